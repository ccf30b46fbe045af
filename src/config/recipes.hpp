// Recipes: the defaults of MXNet's train_cifar10.py, train_imagenet.py and train_mnist.py, and one for CIFAR-10 in few
// epochs.
#pragma once

#include <string>
#include <vector>

#include "option_set.hpp"

namespace dtrain::config {

std::vector<Preset> recipes();
std::vector<std::string> recipe_names();

}  // namespace dtrain::config
