// `train --dry-run`: everything that a run does before its first checkpoint, and what the whole run will need.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "job/spec/train_run.hpp"

namespace dtrain::cli {

// Shows the run, trains a few steps and discards them. Throws Error where the checkpoints do not fit on the disk.
void dry_run(const job::TrainRun& run, data::Loader& training, data::Loader* validation, Reporter& reporter);

}  // namespace dtrain::cli
