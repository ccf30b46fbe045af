// Whether a run could write what it has to, found out without leaving anything behind.
#pragma once

#include "job/spec/train_run.hpp"

namespace dtrain::cli {

// Refuses a run on this machine that could not write its checkpoints, or its records in `records`: their names are too
// long, their folder takes no files, or another run holds it. Throws what the run itself would throw. Checkpoints
// behind URLs are not tried.
void try_claims(const job::TrainRun& run, const std::optional<job::JobFolder>& records);

}  // namespace dtrain::cli
