// The options of jobs in a training, which may be a job or one process.
#pragma once

#include <string>

#include "config/job_options.hpp"

namespace dtrain::config {

// Throws UsageError for options that contradict each other, or that need what the training is not: a job, --elastic or
// another launcher.
void check_training_job(const JobOptions& options, const OptionSet& set);

// In one process: "--env, --notice-url have no effect without a job: ...", of those that stood on the command line.
// Empty: there are none.
std::string idle_without_job(const JobOptions& options, const OptionSet& set);

}  // namespace dtrain::config
