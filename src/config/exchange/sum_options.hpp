// Options of how the gradients of workers are added and travel.
#pragma once

#include "config/job_options.hpp"

namespace dtrain::config {

void bind_sums(OptionSet& set, JobOptions& options);

}  // namespace dtrain::config
