// The buffers of a state as one row of floats, in the order of kStateBuffers.
#pragma once

#include <algorithm>
#include <cstdint>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend {

inline std::int64_t row_size(const ModelState& state) {
  std::int64_t size = 0;
  for (const auto buffer : kStateBuffers) size += static_cast<std::int64_t>((state.*buffer).size());
  return size;
}

// Calls visit(buffer, first, size, done) for each buffer that holds floats of the range: its floats [first, first +
// size), of which `done` of the range come before.
template <typename Visit>
void visit_row(const ModelState& state, const FloatRange& range, Visit visit) {
  std::int64_t begin = 0;
  for (const auto member : kStateBuffers) {
    const std::vector<float>& buffer = state.*member;
    const std::int64_t end = begin + static_cast<std::int64_t>(buffer.size());
    const std::int64_t first = std::max(begin, range.first), last = std::min(end, range.first + range.size);
    if (first < last) visit(buffer, first - begin, last - first, first - range.first);
    begin = end;
  }
}

}  // namespace dtrain::backend
