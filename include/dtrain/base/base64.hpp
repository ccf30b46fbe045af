// Bytes as plain text (RFC 4648).
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

std::string base64(std::string_view bytes);  // with padding
// What is none of its letters counts for nothing, as it stands in documents of several lines.
std::string from_base64(std::string_view text);

}  // namespace dtrain
