// Secrets: made by the kernel, and compared in constant time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrain {

// Unpredictable bytes from getrandom(2). Not for anything that feeds training: see base/random.hpp.
std::string unpredictable_bytes(std::size_t size);
// Takes as long for equal texts as for different ones of the same length.
[[nodiscard]] bool equal_secrets(std::string_view a, std::string_view b);

std::string to_hex(std::string_view bytes);  // lower case

}  // namespace dtrain
