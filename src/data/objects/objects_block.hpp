// How the bytes of a record's objects begin.
#pragma once

#include <cstdint>
#include <string_view>

#include <dtrain/data/objects.hpp>

namespace dtrain::data {

inline constexpr std::string_view kObjectsMagic = "DTOB";
inline constexpr std::uint32_t kMostObjectsSide = 65500;  // pixels of an annotated picture
inline constexpr float kLargestBoxClass = 1 << 24;        // in labels: floats hold every whole number up to it
bool begins_objects(ByteView bytes);
// Of the picture that was annotated, without a look at its objects or the checksum. Throws DataError.
ScaledSize annotated_size(ByteView block);

// Whether a picture of this size may be the annotated one: it may be resized, but not of another shape.
bool is_same_shape(const ScaledSize& annotated, int height, int width);
// Throws DataError unless it may.
void require_same_shape(const ScaledSize& annotated, int height, int width);

}  // namespace dtrain::data
