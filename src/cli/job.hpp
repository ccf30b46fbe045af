// `dtrain train` on several workers: this process coordinates and does not train.
#pragma once

#include "console.hpp"
#include "train_options.hpp"

namespace dtrain::cli {

// Until the job is over. Throws Stopped when it can be resumed, Error with the first failure when it cannot go on.
ExitCode run_job(const TrainOptions& options, const OptionSet& set, Console& console);

}  // namespace dtrain::cli
