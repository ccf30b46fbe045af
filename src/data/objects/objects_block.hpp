// How the bytes of a record's objects begin.
#pragma once

#include <cstdint>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

inline constexpr std::string_view kObjectsMagic = "DTOB";
inline constexpr std::uint32_t kMostObjectsSide = 65500;  // pixels of an annotated picture
bool begins_objects(ByteView bytes);

}  // namespace dtrain::data
