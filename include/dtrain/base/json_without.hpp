// JSON documents that are mostly of no interest.
#pragma once

#include <span>
#include <string_view>

#include <dtrain/base/json.hpp>

namespace dtrain {

// Json::parse() without the members of these names, at any depth: they take no memory.
Json parse_json_without(std::string_view text, std::string_view source, std::span<const std::string_view> without);

}  // namespace dtrain
