// Bytes as plain text (RFC 4648).
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

std::string base64(std::string_view bytes);  // with padding

}  // namespace dtrain
