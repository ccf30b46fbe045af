// The weights of a network that a file holds once or several times, such as those of a training and their average.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "foreign/foreign_tensor.hpp"

namespace dtrain::train {

struct WeightSet {
  std::string_view prefix;           // what stands in front of the network's names: "", "module.", "state_dict.", ...
  std::vector<std::size_t> tensors;  // that have them, in the order of the file
};

// Those with most of the tensors of these names, the one to read first: trained weights, then others by the alphabet,
// then averages and teachers. They borrow from the tensors.
std::vector<WeightSet> weight_sets(const std::unordered_set<std::string_view>& names,
                                   const std::vector<ForeignTensor>& tensors);

// For people, which of several sets is read; empty: there is one. A detector's backbone has two names for the same
// tensors, which are one set.
std::string choice_of_sets(const std::vector<WeightSet>& sets);

}  // namespace dtrain::train
