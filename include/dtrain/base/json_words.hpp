// Command lines and environments in JSON, byte for byte: JSON has no bytes, and these words need not be UTF-8.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/json.hpp>

namespace dtrain {

// A byte above 0x7f becomes the character of that number.
Json words_to_json(const std::vector<std::string>& words);
std::vector<std::string> words_from_json(const Json& json);  // throws DataError

}  // namespace dtrain
