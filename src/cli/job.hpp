// `dtrain train` on several workers: this process coordinates and does not train.
#pragma once

#include <dtrain/elastic/agent.hpp>

#include "console.hpp"
#include "train_options.hpp"

namespace dtrain::cli {

// Until the job is over. Throws Stopped when it can be resumed, Error with the first failure when it cannot go on.
ExitCode run_job(const TrainOptions& options, const OptionSet& set, Console& console);
// The same as a job's next coordinator: its port is the answer, and comes first.
ExitCode take_over(const elastic::CoordinatorOrder& order, Console& console);

}  // namespace dtrain::cli
