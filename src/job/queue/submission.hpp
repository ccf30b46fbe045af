// Gives a command to the queue that its options name, instead of running it.
#pragma once

#include <string>

#include <dtrain/base/reporter.hpp>

#include "config/launch_options.hpp"
#include "config/train_options.hpp"

namespace dtrain::job {

// The --cluster whose queue the user chose; empty: none was named.
std::string chosen_cluster(const config::OptionSet& set);
// Settles whether the job runs here or is given to a queue: the process of an attempt runs it. There this also removes
// the variables of the queue, which programs that the job starts would misunderstand, so call it before any child is
// started. Throws UsageError for options of a queue where the job is given to none.
void settle_queue(config::JobOptions& options, const config::OptionSet& set);

// Check what can be known before the job starts, and print its number. Throw what the job itself would throw, and
// UsageError for options with which it could not be resumed.
ExitCode submit_training(const config::TrainOptions& options, const config::OptionSet& set, Reporter& reporter);
ExitCode submit_program(const config::LaunchOptions& options, const config::OptionSet& set, Reporter& reporter);

}  // namespace dtrain::job
