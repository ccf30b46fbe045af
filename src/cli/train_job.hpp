// `dtrain train` on several workers.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "train_options.hpp"

namespace dtrain::cli {

// As run_job() of job.hpp.
ExitCode train_in_job(const TrainOptions& options, const OptionSet& set, Reporter& reporter);

}  // namespace dtrain::cli
