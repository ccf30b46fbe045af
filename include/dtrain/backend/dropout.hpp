// The mask of dropout layers, the same on every backend: a pure function of (seed, epoch, sample, node, element).
#pragma once

#include <cstdint>
#include <span>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend {

// keep[e] becomes 1 where element e (counted in c, h, w order) of node `node` (index in Graph::nodes) of the sample is
// kept, 0 where it is dropped: the rule that stands at StepKey. Kept values are then multiplied by dropout_scale(p).
void dropout_mask(const StepKey& key, int node, std::uint32_t sample_id, float p, std::span<std::uint8_t> keep);

inline float dropout_scale(float p) { return 1.0f / (1.0f - p); }

}  // namespace dtrain::backend
