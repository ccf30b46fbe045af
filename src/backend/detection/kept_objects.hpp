// Which of the regions that are objects train the masks. For every backend.
#pragma once

#include <cstdint>

namespace dtrain::backend {

constexpr std::int32_t kNoRow = -1;

// The row of object `index` of `objects`, or kNoRow: all of them where there is room for `rows`, else evenly spaced
// ones. The true boxes are the last objects, so the first `rows` alone would leave them out.
constexpr std::int32_t row_of_object(std::int32_t index, std::int32_t objects, std::int32_t rows) {
  if (objects <= rows) return index;
  const auto row = static_cast<std::int32_t>(std::int64_t{index} * rows / objects);
  return (std::int64_t{index} + 1) * rows / objects > row ? row : kNoRow;
}

}  // namespace dtrain::backend
