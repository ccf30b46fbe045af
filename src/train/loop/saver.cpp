#include "saver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/train/export.hpp>

namespace dtrain::train {

Saver::Saver(const nn::Graph& graph, const backend::Executable& executable, const TrainerOptions& options,
             std::uint64_t samples)
    : graph_(graph), executable_(executable), options_(options), samples_(samples) {}

std::vector<ReportEvent> Saver::save(const RunState& run, std::uint64_t generation) {
  std::vector<ReportEvent> reports;
  if (!options_.checkpoint_prefix) return reports;
  try {
    write(run, generation, reports);
    saved_ = run.cursor;
  } catch (const Error& error) {
    const std::string kept =
        last_good_.empty() ? "no checkpoint of this run exists yet" : "the last good one is " + last_good_.string();
    reports.push_back(WarningReport{fmt::format("checkpoint not saved: {}; training goes on, {}", error.what(), kept)});
  }
  return reports;
}

void Saver::write(const RunState& run, std::uint64_t generation, std::vector<ReportEvent>& reports) {
  const Checkpoint checkpoint = snapshot(run, generation);
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(checkpoint.state.parameters.begin(), checkpoint.state.parameters.end(), finite)) {
    throw Error("the weights are no longer finite");
  }
  const Cursor& cursor = run.cursor;
  last_good_ = save_checkpoint({*options_.checkpoint_prefix, cursor.epoch, cursor.step}, checkpoint, options_.store);
  reports.push_back(SavedReport{last_good_});
  if (options_.checkpoint_format == CheckpointFormat::mxnet && cursor.step == 0) {
    const auto write = [&](const Path& prefix) { return export_mxnet(checkpoint, prefix, cursor.epoch); };
    for (const Path& path : export_to(*options_.checkpoint_prefix, write, options_.store)) {
      reports.push_back(SavedReport{path});
    }
  }
}

Checkpoint Saver::snapshot(const RunState& run, std::uint64_t generation) const {
  return {.graph = graph_,
          .state = executable_.read_state(),
          .cursor = run.cursor,
          .job = {.seed = options_.seed,
                  .samples = samples_,
                  .global_batch = options_.global_batch,
                  .logical_shards = options_.logical_shards,
                  .generation = generation,
                  .dtype = backend::dtype_name(options_.dtype),
                  .optimizer = options_.optimizer,
                  .schedule = options_.schedule,
                  .preprocessing = options_.preprocessing},
          .ramp = run.ramp,
          .epoch_totals = run.totals};
}

}  // namespace dtrain::train
