// What a training run begins with: fresh weights, the checkpoint of an epoch, or the newest undamaged one.
#pragma once

#include <optional>

#include <dtrain/base/reporter.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "config/train_options.hpp"

namespace dtrain::job {

struct Start {
  train::Checkpoint checkpoint;
  Path file;  // the manifest that --resume chose; empty with --load-epoch
};

// nullopt: fresh weights. With --resume damaged checkpoints are reported and passed over; none at all is a fresh start,
// all damaged is a DataError.
std::optional<Start> find_start(const config::TrainOptions& options, const config::OptionSet& set,
                                const train::SharedStore& store, Reporter& reporter);

// With --resume: takes seed, batch and shards of the checkpoint where the person chose none; a choice that differs is a
// UsageError, because the run would not be the same any more. A job's --batch-size is no such choice: it counts for the
// hosts of the start, which may be others now.
void agree_with_checkpoint(const train::Checkpoint& start, const config::OptionSet& set, config::TrainOptions& options);

// The checkpoint's graph where the person chose none; else theirs, which must be the same network.
nn::Graph graph_of_run(const std::optional<train::Checkpoint>& start, const config::OptionSet& set,
                       config::TrainOptions& options);

// Imported weights come without an optimizer, and another rule needs other slots: those begin at zero.
// True when they did.
bool complete_optimizer_state(train::Checkpoint& start, const nn::Optimizer& optimizer);
void fit_optimizer_state(train::Checkpoint& start, const nn::Optimizer& optimizer, Reporter& reporter);

}  // namespace dtrain::job
