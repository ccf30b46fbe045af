// settle_run(): the decisions of a training run, which the process that the user started makes once.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "train_run.hpp"

namespace dtrain::job {

// Makes all decisions of a run. Throws errors that the user must see before anything runs: UsageError, DataError.
// options.compute.hosts is set already; `workers`: number at the start, for the choice of V.
TrainRun settle_run(const config::TrainOptions& given, const config::OptionSet& set, int workers, Reporter& reporter);

}  // namespace dtrain::job
