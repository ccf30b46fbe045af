#include "shared_folders.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/temporaries.hpp>
#include <dtrain/data/remote.hpp>

#include "prefix_owner.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
using Patience = std::chrono::milliseconds;
constexpr auto kBetweenAsks = 100ms;
constexpr const char* kSharedPlace = "a folder that all hosts share, or s3://BUCKET/NAME";

// Asks again until the answer is true or time is up.
template <typename Ask>
bool within(Patience patience, const Ask& ask) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (ask()) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kBetweenAsks);
  }
}

// Whether the folder certainly has no such file: it is listed, because on NFS a name that was looked up before it
// existed stays invisible. False where the folder does not answer.
bool is_certainly_missing(const Path& file) {
  std::error_code error;
  std::filesystem::directory_iterator entry(file.has_parent_path() ? file.parent_path() : Path("."), error), end;
  for (; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename() == file.filename()) return false;
  }
  return !error || error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
}

// Whether the file is there and `is_right` says so of it, or whether that cannot be known. `is_right` may throw Error.
template <typename IsRight>
bool may_be_right(const Path& file, const IsRight& is_right) {
  if (is_certainly_missing(file)) return false;
  try {
    return is_right();
  } catch (const Error&) {  // it is another user's, its folder does not answer, or it is damaged
    return true;
  }
}

std::string folder_on_host(const Path& prefix) {
  return std::filesystem::absolute(prefix).lexically_normal().parent_path().string();
}

// A full disk, or a server that is away, is no reason: the others cannot save there now either.
std::optional<std::string> why_not_writable(const Path& prefix) {
  const Path file = temporary_for(prefix.string() + ".trial");
  const FileDescriptor made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  const int reason = errno;
  if (made) ::unlink(file.c_str());
  const bool is_refused = !made && (reason == EROFS || reason == EACCES || reason == EPERM);
  return is_refused ? std::optional<std::string>(std::strerror(reason)) : std::nullopt;
}

auto saved_place(const train::CheckpointName& name) { return std::tuple(name.epoch, name.step); }

// The checkpoint of the prefix that the job in the folder saved last, as far as it is known.
std::optional<train::CheckpointName> latest_in(const JobFolder& folder, const Path& prefix) {
  try {
    if (!file_exists(folder.latest())) return std::nullopt;
    return train::name_of_manifest(prefix, read_file(folder.latest()));
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void require_shared_prefix(const config::TrainSpec& spec, Patience patience) {
  if (spec.prefix_token.empty() || !spec.options.model_prefix) return;
  const Path& prefix = *spec.options.model_prefix;
  const auto is_same = [&] { return read_owner(prefix).token == spec.prefix_token; };
  if (!within(patience, [&] { return may_be_right(owner_file(prefix), is_same); })) {
    throw Error(
        fmt::format("the checkpoints of {} would be saved in {} of {}, which is not the folder that the "
                    "coordinator's machine sees: give --model-prefix {}",
                    prefix.string(), folder_on_host(prefix), host_name(), kSharedPlace));
  }
  const auto reason = why_not_writable(prefix);
  if (!reason) return;
  throw Error(fmt::format("{} cannot save checkpoints in {}: {}: mount the folder there so that this user can write",
                          host_name(), folder_on_host(prefix), *reason));
}

void require_shared_job_folder(const std::string& host, const JobFolder& folder, const std::string& token,
                               Patience patience) {
  const auto is_of_job = [&] {
    const auto file = read_coordinator(folder);
    return file && equal_secrets(file->token, token);
  };
  if (within(patience, [&] { return may_be_right(folder.coordinator(), is_of_job); })) return;
  throw RemoteError(
      fmt::format("{}: {} is another folder there than on the coordinator's machine: it has no {} of this "
                  "job",
                  host, folder.path.string(), folder.coordinator().filename().string()),
      "all hosts of a job need its folder: mount it on this host, or choose another --job-dir");
}

void require_latest_checkpoint(const config::TrainOptions& options, const train::SharedStore& store,
                               Patience patience) {
  if (!options.job.is_job() || !options.model_prefix) return;
  const Path& prefix = *options.model_prefix;
  const JobFolder folder{options.job.folder};
  const auto latest = latest_in(folder, prefix);
  if (!latest) return;
  std::vector<train::CheckpointName> there;
  const bool is_there = within(patience, [&] {
    there = train::list_checkpoints(prefix, store);
    return !there.empty() && saved_place(there.front()) >= saved_place(*latest);
  });
  if (is_there) return;
  const std::string newest = there.empty() ? fmt::format("there is no checkpoint of {}", prefix.string())
                                           : fmt::format("the newest that is there is {}", there.front().stem());
  throw UsageError(
      fmt::format("--resume: the job in {} saved {} last, and this machine does not see it: {}", folder.path.string(),
                  latest->stem(), newest),
      fmt::format("the host that saved it may have it on its own disk: copy it to the folder of --model-prefix, which "
                  "all hosts must share; or remove {} to go on without it",
                  folder.latest().string()));
}

void refuse_prefix_in_copies(const config::TrainOptions& options) {
  if (!options.model_prefix || options.job.sync_to.empty() || options.epochs == 0) return;
  const Path& prefix = *options.model_prefix;
  std::error_code error;
  const bool is_here = std::filesystem::equivalent(options.job.sync_to, ".", error);
  if (prefix.is_absolute() || data::is_remote(prefix) || is_here) return;
  throw UsageError(fmt::format("--model-prefix {}: workers run in --sync-dst-dir {}, so that each host would save "
                               "checkpoints in its own copy of the current folder",
                               prefix.string(), options.job.sync_to),
                   fmt::format("give the whole path of {}", kSharedPlace));
}

}  // namespace dtrain::job
