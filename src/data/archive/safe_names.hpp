// Names from elsewhere that become files here.
#pragma once

#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

// Whether the name, below some folder, stays below it: no "..", not absolute, not empty, no zero byte.
bool stays_inside(std::string_view name);
// Throws DataError unless it does.
void check_stays_inside(std::string_view name, std::string_view source);

// Throws DataError for what a folder that is sent whole may not hold: a link to a folder or to nothing, a socket.
[[noreturn]] void refuse_to_send(const Path& path);

}  // namespace dtrain::data
