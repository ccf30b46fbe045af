// Recipes: the defaults of MXNet's train_cifar10.py, train_imagenet.py and train_mnist.py, and one for CIFAR-10 in few
// epochs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "option_set.hpp"

namespace dtrain::config {

std::vector<Preset> recipes();
std::vector<std::string> recipe_names();
// nullopt: the recipe leaves the option at its default.
std::optional<std::string> value_in_recipe(std::string_view recipe, std::string_view option);

}  // namespace dtrain::config
