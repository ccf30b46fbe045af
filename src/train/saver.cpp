#include "saver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/train/export.hpp>

namespace dtrain::train {

Saver::Saver(const nn::Graph& graph, const backend::Executable& executable, const TrainerOptions& options,
             std::uint64_t samples, Observer& observer)
    : graph_(graph), executable_(executable), options_(options), samples_(samples), observer_(observer) {}

bool Saver::save(const Cursor& cursor) {
  if (!options_.checkpoint_prefix) return false;
  try {
    write(cursor);
    return true;
  } catch (const Error& error) {
    const std::string kept =
        last_good_.empty() ? "no checkpoint of this run exists yet" : "the last good one is " + last_good_.string();
    observer_.on_warning(fmt::format("checkpoint not saved: {}; training goes on, {}", error.what(), kept));
    return false;
  }
}

void Saver::write(const Cursor& cursor) {
  const Checkpoint checkpoint = snapshot(cursor);
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(checkpoint.state.parameters.begin(), checkpoint.state.parameters.end(), finite)) {
    throw Error("the weights are no longer finite");
  }
  make_folder(options_.checkpoint_prefix->parent_path());
  last_good_ = save_checkpoint({*options_.checkpoint_prefix, cursor.epoch, cursor.step}, checkpoint);
  observer_.on_checkpoint(last_good_);
  if (options_.checkpoint_format == "mxnet" && cursor.step == 0) {
    for (const Path& path : export_mxnet(checkpoint, *options_.checkpoint_prefix, cursor.epoch))
      observer_.on_checkpoint(path);
  }
}

Checkpoint Saver::snapshot(const Cursor& cursor) const {
  return {.graph = graph_,
          .state = executable_.read_state(),
          .cursor = cursor,
          .job = {.seed = options_.seed,
                  .samples = samples_,
                  .global_batch = options_.global_batch,
                  .logical_shards = options_.logical_shards,
                  .generation = 0,
                  .dtype = options_.dtype,
                  .optimizer = options_.optimizer,
                  .schedule = options_.schedule,
                  .preprocessing = options_.preprocessing}};
}

}  // namespace dtrain::train
