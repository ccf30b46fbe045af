// Options that have no effect, because an option that they depend on is not set for them.
#pragma once

#include <string>
#include <vector>

#include "config/train_options.hpp"

namespace dtrain::config {

// "--ema-warmup has no effect without --ema", a line each.
std::vector<std::string> idle_options(const TrainOptions& options, const OptionSet& set);

}  // namespace dtrain::config
