// Names from elsewhere that become files here.
#pragma once

#include <string_view>

namespace dtrain::data {

// Whether the name, below some folder, stays below it: no "..", not absolute, not empty, no zero byte.
bool stays_inside(std::string_view name);
// Throws DataError unless it does.
void check_stays_inside(std::string_view name, std::string_view source);

}  // namespace dtrain::data
