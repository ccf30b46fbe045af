// The words by which items of a picture are drawn: see RegionDraw. For every backend.
#pragma once

#include <dtrain/base/random.hpp>

namespace dtrain::backend {

// Those of the items 4 * block to 4 * block + 3.
constexpr PhiloxCounter draw_words(std::uint32_t block, std::uint32_t node, std::uint32_t sample, std::uint32_t epoch,
                                   std::uint32_t seed_low, std::uint32_t seed_high) {
  return philox({block, node, sample, epoch}, {seed_low, seed_high ^ static_cast<std::uint32_t>(RandomUse::regions)});
}

}  // namespace dtrain::backend
