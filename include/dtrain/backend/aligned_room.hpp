// Memory for HostBatch::images, aligned as backends want it.
#pragma once

#include <memory>
#include <vector>

namespace dtrain::backend {

// Room for so many floats at an address that is a multiple of 64, inside `memory`, which grows for it.
inline float* aligned_room(std::vector<float>& memory, std::size_t floats) {
  constexpr std::size_t kAlignment = 64, kSlack = kAlignment / sizeof(float);
  memory.resize(floats + kSlack);
  void* first = memory.data();
  std::size_t space = memory.size() * sizeof(float);
  return static_cast<float*>(std::align(kAlignment, floats * sizeof(float), first, space));
}

}  // namespace dtrain::backend
