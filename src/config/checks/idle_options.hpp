// Options that the user chose in vain: another option, which they need, is not as they need it.
#pragma once

#include <string>
#include <vector>

#include "config/train_options.hpp"

namespace dtrain::config {

// "--ema-warmup has no effect without --ema", a line each.
std::vector<std::string> idle_options(const TrainOptions& options, const OptionSet& set);

}  // namespace dtrain::config
