#include "trial_claims.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <vector>

#include <dtrain/base/file_exists.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "job/spec/job_client.hpp"
#include "job/spec/prefix_claim.hpp"

namespace dtrain::cli {
namespace {

// Makes a folder with those above it, and removes those that were missing, unless something is in them by then.
class TrialFolder {
 public:
  explicit TrialFolder(const Path& folder) {
    std::error_code unreachable;
    const Path whole = std::filesystem::absolute(folder), there = existing_folder(whole, unreachable);
    for (Path missing = whole; !unreachable && missing != there; missing = missing.parent_path())
      missing_.push_back(missing);
    try {
      make_folder(folder);
    } catch (...) {
      remove_again();
      throw;
    }
  }
  TrialFolder(const TrialFolder&) = delete;
  ~TrialFolder() { remove_again(); }

 private:
  void remove_again() const {
    std::error_code stays;
    for (const Path& folder : missing_) std::filesystem::remove(folder, stays);
  }

  std::vector<Path> missing_;  // the deepest first
};

std::set<Path> names_in(const Path& folder) {
  std::set<Path> names;
  std::error_code unreadable;
  for (std::filesystem::directory_iterator at(folder, unreadable), end; !unreadable && at != end;
       at.increment(unreadable))
    names.insert(at->path().filename());
  return names;
}

// Call it while the lock is held, so that no other process can have taken the file meanwhile.
void remove_if_new(const job::FileLock& lock, const std::set<Path>& before) {
  std::error_code error;
  const Path file = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", lock.descriptor().get()), error);
  if (!error && !before.contains(file.filename())) std::filesystem::remove(file, error);
}

void try_prefix(const Path& prefix, const train::SharedStore& store) {
  const Path parent = prefix.has_parent_path() ? prefix.parent_path() : Path(".");
  const TrialFolder folder(parent);
  const std::set<Path> before = names_in(parent);
  if (const auto lock = job::lock_prefix(prefix, "--model-prefix")) remove_if_new(*lock, before);
  train::try_prefix(prefix, store);
}

void try_records(const job::JobFolder& records) {
  const TrialFolder folder(records.path);
  const std::set<Path> before = names_in(records.path);
  const job::FileLock lock = job::coordinate(records);
  remove_if_new(lock, before);
  refuse_living_job(records);
}

}  // namespace

void try_claims(const job::TrainRun& run, const std::optional<job::JobFolder>& records) {
  const auto& prefix = run.options.model_prefix;
  if (prefix && !data::is_remote(*prefix)) try_prefix(*prefix, run.remote.store);
  if (records) try_records(*records);
}

}  // namespace dtrain::cli
