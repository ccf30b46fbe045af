// Choices that people write by name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dtrain::nn {

using Names = std::span<const char* const>;

std::optional<std::size_t> index_of(Names names, std::string_view name);

// What to say about a name that is none of them: the nearest one, or else all.
std::string advice(Names names, std::string_view name);

}  // namespace dtrain::nn
