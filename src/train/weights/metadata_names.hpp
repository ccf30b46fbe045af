// The names of classes in what other programs write beside a model.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace dtrain::train {

// By label, of the first key that has exactly so many names: as a list or as names by number or numbers by name, in
// JSON or as Python prints them, or in lines, or between commas. Empty: none has.
std::vector<std::string> names_in_metadata(const std::map<std::string, std::string>& metadata, int classes);

}  // namespace dtrain::train
