// Places for tensors that do not live at the same time.
#pragma once

#include <cstddef>
#include <vector>

namespace dtrain::backend {

struct Lifetime {
  std::size_t bytes = 0;
  int first = 0, last = 0;  // inclusive
};

struct Places {
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
};

// Largest first, each at the lowest multiple of `alignment` that is free during its life.
Places plan_places(const std::vector<Lifetime>& lifetimes, std::size_t alignment);

}  // namespace dtrain::backend
