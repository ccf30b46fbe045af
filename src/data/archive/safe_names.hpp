// Names from elsewhere that become files here.
#pragma once

#include <string_view>

namespace dtrain::data {

// Throws DataError unless the name, below some folder, stays below it: no "..", not absolute, not empty, no zero byte.
void check_stays_inside(std::string_view name, std::string_view source);

}  // namespace dtrain::data
