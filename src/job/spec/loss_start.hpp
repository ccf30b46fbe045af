// The loss of a training run.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "train_run.hpp"

namespace dtrain::job {

// Gives run.graph the loss that the user chose, and says how classes are weighted. Options that are not given leave the
// graph's own as it is; a run that is resumed keeps that of its checkpoint. Needs run.sources and the names of the
// classes. Throws UsageError for a choice that does not fit, DataError for a file of weights that cannot be read.
void settle_loss(const config::OptionSet& set, bool resumes, TrainRun& run, Reporter& reporter);

}  // namespace dtrain::job
