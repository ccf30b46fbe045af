#include "prefix_claim.hpp"

#include <fmt/format.h>

#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/base/temporaries.hpp>
#include <dtrain/data/remote.hpp>

namespace dtrain::job {
namespace {

[[noreturn]] void refuse(const std::string& found) {
  throw UsageError(
      found,
      "--resume continues the newest complete checkpoint, --force trains again over what is there; or choose "
      "another --model-prefix");
}

// A run from --load-epoch N continues what is not newer than epoch N.
bool is_continued(const train::CheckpointName& newest, const config::TrainOptions& options) {
  if (options.resume) return true;
  if (!options.load_epoch) return false;
  return std::tuple(newest.epoch, newest.step) <= std::tuple(static_cast<std::uint32_t>(*options.load_epoch), 0u);
}

void refuse_to_overwrite(const config::TrainOptions& options, const train::SharedStore& store) {
  if (options.force || options.epochs == 0) return;
  const Path& prefix = *options.model_prefix;
  const auto names = train::list_checkpoints(prefix, store);
  if (!names.empty() && !is_continued(names.front(), options)) {
    refuse(fmt::format("--model-prefix {}: has checkpoints already, the newest is {}", prefix.string(),
                       names.front().stem()));
  }
  if (!names.empty() || options.load_epoch) return;
  if (const auto orphans = train::orphaned_tensors(prefix); !orphans.empty()) {
    refuse(fmt::format("--model-prefix {}: {} is there without its manifest, the .json file beside it", prefix.string(),
                       orphans.front().string()));
  }
}

std::string start_of_names(const Path& prefix) { return prefix.filename().string() + "-"; }

Path lock_of(const Path& prefix) { return prefix.parent_path() / fmt::format(".{}.lock", prefix.filename().string()); }

bool can_lock(const config::TrainOptions& options) {
  return options.model_prefix && !data::is_remote(*options.model_prefix) && !options.job.is_on_other_machines();
}

FileLock lock_prefix(const Path& prefix) {
  make_folder(prefix.parent_path());
  if (auto lock = FileLock::take(lock_of(prefix))) return std::move(*lock);
  throw Error(fmt::format("--model-prefix {}: another run is writing its checkpoints there", prefix.string()),
              "wait for its end, or choose another --model-prefix");
}

}  // namespace

std::optional<FileLock> claim_prefix(const config::TrainOptions& options, const train::SharedStore& store,
                                     Reporter& reporter) {
  if (!options.model_prefix) {
    if (!options.benchmark && !options.test_io && options.epochs > 0)
      reporter.note("Without --model-prefix no checkpoint is written: the trained weights are gone at the end");
    return std::nullopt;
  }
  const Path& prefix = *options.model_prefix;
  const bool is_far = data::is_remote(prefix);
  std::optional<FileLock> lock;
  if (can_lock(options)) lock = lock_prefix(prefix);
  refuse_to_overwrite(options, store);
  if (is_far || lock) train::try_prefix(prefix, store);
  if (lock) {
    for (const Path& file : remove_abandoned_temporaries(prefix.parent_path(), start_of_names(prefix)))
      reporter.note(fmt::format("Removed {}, which a killed process left behind", file.string()));
  }
  return lock;
}

std::optional<FileLock> lock_prefix_again(const config::TrainOptions& options) {
  return can_lock(options) ? FileLock::take(lock_of(*options.model_prefix)) : std::nullopt;
}

}  // namespace dtrain::job
