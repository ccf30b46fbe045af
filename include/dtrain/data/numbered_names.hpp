// Names of classes for output, where each class needs one.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace dtrain::data {

// A name for each of so many classes: those without one go by their number.
inline std::vector<std::string> numbered_names(std::vector<std::string> names, std::size_t classes) {
  for (std::size_t label = names.size(); label < classes; ++label) names.push_back(std::to_string(label));
  return names;
}

}  // namespace dtrain::data
