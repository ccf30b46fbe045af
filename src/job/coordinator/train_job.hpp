// `dtrain train` on several workers.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "config/train_options.hpp"

namespace dtrain::job {

// For --dry-run and --test-io, which look at one process: drops the hosts that a node's DEEPLEARNING_* variables name,
// and of their GPUs all but the first.
void drop_hosts_of_node(const config::OptionSet& set, config::TrainOptions& options, Reporter& reporter);

// Like run_job() of job.hpp.
ExitCode train_in_job(const config::TrainOptions& options, const config::OptionSet& set, Reporter& reporter);

}  // namespace dtrain::job
