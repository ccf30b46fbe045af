// Options that have no effect, because an option that they depend on is not set for them, or because the run is too
// short.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/train_options.hpp"

namespace dtrain::config {

// "--ema-warmup has no effect without --ema", a line each.
std::vector<std::string> idle_options(const TrainOptions& options, const OptionSet& set);

// Whether the option, whose name has no dashes, has all that it needs.
bool has_effect(const TrainOptions& options, std::string_view name);

}  // namespace dtrain::config
