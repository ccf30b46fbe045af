// Which object an anchor stands for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <dtrain/nn/objects.hpp>

namespace dtrain::backend {

constexpr std::int32_t kBackground = -1, kNeither = -2;

struct MatchRule {
  float background_below = 0.4f;
  float object_from = 0.5f;  // overlaps in between make an anchor neither
  bool best_always = true;   // the anchors that an object overlaps most are its own however little
};

// For each anchor the number of an object, kBackground or kNeither. Of objects that overlap equally the first counts.
// Without objects all is background.
std::vector<std::int32_t> match_anchors(std::span<const nn::Box> anchors, std::span<const nn::Box> objects,
                                        const MatchRule& rule);

}  // namespace dtrain::backend
