// The start of a training run: fresh weights, the checkpoint of an epoch, or the newest undamaged one.
#pragma once

#include <optional>
#include <string_view>

#include <dtrain/base/reporter.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "config/train_options.hpp"

namespace dtrain::job {

struct Start {
  train::Checkpoint checkpoint;
  Path file;  // the manifest that --resume chose; empty with --load-epoch
};

// Throws UsageError for options that a start of the job again would contradict: after a loss, `starter` continues the
// job from its newest checkpoint.
void refuse_other_starts(const config::TrainOptions& options, std::string_view starter);

// nullopt: fresh weights. With --resume, damaged checkpoints are reported and skipped; if there is none at all the
// start is fresh, and if all are damaged it throws DataError.
std::optional<Start> find_start(const config::TrainOptions& options, const config::OptionSet& set,
                                const train::SharedStore& store, Reporter& reporter);

// With --resume: takes seed, batch and shards of the checkpoint unless the user chose them; a different choice throws
// UsageError, because the run would not be the same. --batch-size of a job is exempt: it counts for the initial hosts,
// which may be others now. Inside an epoch the order of its samples counts as well.
void agree_with_checkpoint(const train::Checkpoint& start, const config::OptionSet& set, config::TrainOptions& options);

// The checkpoint's graph unless the user chose one; a chosen graph must be the same network. Layers learn as --freeze
// says, else as they did when the checkpoint was saved; a run that is resumed freezes no others.
nn::Graph graph_of_run(const std::optional<train::Checkpoint>& start, const config::OptionSet& set,
                       config::TrainOptions& options, Reporter& reporter);

// Adds missing optimizer state, which begins at zero: imported weights have none, and another rule needs other slots.
// The updates count from there. Returns true if it did.
bool complete_optimizer_state(train::Checkpoint& start, const config::TrainOptions& options);
// The same with reports. An average of weights that the checkpoint has does not warm up again.
void fit_optimizer_state(train::Checkpoint& start, config::TrainOptions& options, Reporter& reporter);

}  // namespace dtrain::job
