// Which rows of a value that holds regions one below the other (nn::RegionAlign, apart) show a region. A picture rarely
// has as many as there is room for, and what lies below its last one matters to no result and to no gradient.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "picture_heads.hpp"

namespace dtrain::backend::cpu {

struct RegionRows {
  TensorId regions = kNoTensor;  // those that are there come first; kNoTensor: no value of regions, all rows count
  int of_region = 0;             // from the first row of a region to that of the next

  // The first of the `height` rows of sample i of the chunk below its last region and the row of zeros there.
  int end(const Context& c, int i, int height) const {
    if (regions == kNoTensor) return height;
    const std::vector<Region> all = regions_of(c, regions, i);
    const auto last = std::find_if(all.rbegin(), all.rend(), [](const Region& region) { return region.is_there(); });
    return std::min(of_region * static_cast<int>(all.rend() - last), height);
  }

  // Sets to zero what lies there of a tensor of the chunk that has one or several rows for each of the `height`.
  void clear_below(const Context& c, TensorId id, int height) const {
    if (regions == kNoTensor) return;
    const std::size_t bytes = c.tensors[static_cast<std::size_t>(id)].sample_bytes();
    for (int i = 0; i < c.count; ++i) {
      const std::size_t kept = bytes / static_cast<std::size_t>(height) * static_cast<std::size_t>(end(c, i, height));
      std::memset(static_cast<std::byte*>(c.sample(id, i)) + kept, 0, bytes - kept);
    }
  }
};

}  // namespace dtrain::backend::cpu
