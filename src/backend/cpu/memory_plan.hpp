// Places for tensors that do not live at the same time.
#pragma once

#include <cstddef>
#include <vector>

namespace dtrain::backend::cpu {

struct Lifetime {
  std::size_t bytes = 0;
  int first = 0, last = 0;  // inclusive
};

struct Places {
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
};

// Largest first, each at the lowest offset free during its life.
Places plan_places(const std::vector<Lifetime>& lifetimes);

}  // namespace dtrain::backend::cpu
