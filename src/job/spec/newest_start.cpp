#include "newest_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <tuple>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/data/remote.hpp>

#include "pretrained_start.hpp"
#include "train_start.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kBetweenReads = 500ms;

auto place_in_run(const train::CheckpointName& name) { return std::tuple(name.epoch, name.step); }

// The coordinator has looked at the same files before the job began, and found no later ones: claim_prefix().
bool are_own(const config::TrainOptions& options) {
  if (options.force) return false;
  return data::is_remote(*options.model_prefix) || !options.job.is_on_other_machines();
}

std::optional<train::CheckpointName> latest_of(const Path& prefix, const JobFolder& folder) {
  if (!file_exists(folder.latest())) return std::nullopt;
  const std::string manifest = read_file(folder.latest());
  if (auto name = train::name_of_manifest(prefix, manifest)) return name;
  throw DataError(fmt::format("{}: names no checkpoint of {}: \"{}\"", folder.latest().string(), prefix.string(),
                              manifest.substr(0, 200)));
}

// nullopt: all are damaged; `damage` says how the newest one is.
std::optional<train::Checkpoint> newest_undamaged_of(const std::vector<train::CheckpointName>& names,
                                                     const TrainRun& run, Reporter& reporter, std::string& damage) {
  for (const train::CheckpointName& name : names) {
    try {
      return train::load_checkpoint_file(name.stem() + ".json", run.remote.store);
    } catch (const DataError& error) {
      if (damage.empty()) damage = error.what();
      reporter.warn(fmt::format("{}; trying the checkpoint before it", error.what()));
    }
  }
  return std::nullopt;
}

// Where the run stands at least.
train::LostStart lost_start(const SavedBefore& saved, const std::string& reason) {
  if (saved.latest) return {saved.latest->epoch, saved.latest->step, reason};
  const std::vector<train::CheckpointName> own = own_checkpoints(saved);
  if (!own.empty()) return {own.front().epoch, own.front().step, reason};
  if (saved.begin) return {saved.begin->epoch, saved.begin->step, reason};
  return {0, 1, reason};
}

// load_start(), which may have to wait for weights that another worker of this host downloads.
void load_first_start(TrainRun& run, Reporter& reporter) {
  if (run.start_file.empty()) fetch_pretrained(run.options, reporter, run.remote.store);
  load_start(run);
}

// nullopt: run.start is set.
std::optional<train::LostStart> try_newest_start(TrainRun& run, const JobFolder& folder, Reporter& reporter) {
  SavedBefore saved{.begin = begin_of(run)};
  try {
    const Path& prefix = *run.options.model_prefix;
    if (are_own(run.options)) saved.listed = train::list_checkpoints(prefix, run.remote.store);
    saved.latest = latest_of(prefix, folder);
    const std::vector<train::CheckpointName> own = own_checkpoints(saved);
    std::string damage;
    if (auto newest = newest_undamaged_of(own, run, reporter, damage)) {
      run.start = std::move(newest);
      complete_optimizer_state(*run.start, run.options);
      return std::nullopt;
    }
    // Without `latest`, damaged ones behind `begin` are those that --resume skipped.
    if (saved.latest || (!own.empty() && !saved.begin)) {
      throw DataError(fmt::format("every checkpoint that the job saved is damaged: {}", damage));
    }
    if (saved.begin) {
      load_start(run);
      return std::nullopt;
    }
  } catch (const Error& error) {
    return lost_start(saved, error.what());
  }
  load_first_start(run, reporter);  // the job has saved nothing; an error is that of --pretrained, and final
  return std::nullopt;
}

}  // namespace

std::optional<train::CheckpointName> begin_of(const TrainRun& run) {
  const config::TrainOptions& options = run.options;
  if (!options.model_prefix) return std::nullopt;
  if (!run.start_file.empty()) return train::name_of_manifest(*options.model_prefix, run.start_file);
  if (!options.load_epoch) return std::nullopt;
  return train::CheckpointName{*options.model_prefix, static_cast<std::uint32_t>(*options.load_epoch)};
}

std::vector<train::CheckpointName> own_checkpoints(const SavedBefore& saved) {
  std::vector<train::CheckpointName> own;
  for (const train::CheckpointName& name : saved.listed) {
    if (!saved.begin || place_in_run(name) > place_in_run(*saved.begin)) own.push_back(name);
  }
  if (!saved.latest) return own;
  const auto behind = std::ranges::find_if(
      own, [&](const train::CheckpointName& name) { return place_in_run(name) <= place_in_run(*saved.latest); });
  if (behind == own.end() || place_in_run(*behind) != place_in_run(*saved.latest)) own.insert(behind, *saved.latest);
  return own;
}

// While a worker reads a checkpoint, another one may remove it for a newer one; a shared folder or S3 may fail for a
// moment.
void load_newest_start(TrainRun& run, const JobFolder& folder, Reporter& reporter, std::chrono::milliseconds patience) {
  if (!run.options.model_prefix) return load_first_start(run, reporter);  // nothing is saved
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const std::optional<train::LostStart> lost = try_newest_start(run, folder, reporter);
    if (!lost) return;
    if (std::chrono::steady_clock::now() > end) {
      reporter.warn(fmt::format("{}; this worker needs the state of another", lost->reason));
      run.start.reset();
      run.lost_start = lost;
      return;
    }
    std::this_thread::sleep_for(kBetweenReads);
  }
}

}  // namespace dtrain::job
