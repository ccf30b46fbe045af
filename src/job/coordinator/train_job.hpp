// `dtrain train` on several workers.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "config/train_options.hpp"

namespace dtrain::job {

// Like run_job() of job.hpp.
ExitCode train_in_job(const config::TrainOptions& options, const config::OptionSet& set, Reporter& reporter);

}  // namespace dtrain::job
