// The optimizer beside the numbers of a recipe that was made for another one.
#pragma once

#include <string>

#include "config/train_options.hpp"

namespace dtrain::config {

bool takes_momentum(nn::OptimizerKind kind);

// Where the user chose another optimizer than the recipe has, the numbers of the recipe that suit its own alone give
// way: the weight decay to a usual one, the factors on learning rates to 1, and the rate of the recipe for detectors to
// one for sgd and nag. Returns what to say about that; empty: nothing.
std::string settle_optimizer(const OptionSet& set, TrainOptions& options);

}  // namespace dtrain::config
