// Options of trainings with parameter servers: --kv-store dist_async.
#pragma once

#include "config/train_options.hpp"

namespace dtrain::config {

// --num-servers and --max-staleness.
void bind_servers(OptionSet& set, JobOptions& options);

// Throws UsageError for options that contradict parameter servers, or that need them. `workers`: at the start. Settles
// how many servers there are.
void settle_servers(TrainOptions& options, backend::DType dtype, const OptionSet& set, int workers);

// "2 parameter servers; each worker is at most 4 steps ahead of the slowest one; ...".
std::string servers_line(const JobOptions& options);

}  // namespace dtrain::config
