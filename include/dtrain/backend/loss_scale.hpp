// What gradients are multiplied by on their way through float16, whose smallest numbers they would else fall below. It
// follows the gradients: halved by a step in which one became infinite, doubled after many in which none did.
#pragma once

#include <cstdint>

namespace dtrain::backend {

// A power of two, so that dividing by it changes no bit. Losses are summed over samples, not averaged: what others
// multiply a mean by is larger by the size of a batch.
struct LossScale {
  float value = 1024;
  std::uint32_t good_steps = 0;  // since it changed last
  bool operator==(const LossScale&) const = default;
};

// Behind a step. Pure. Throws Error when gradients overflow although hardly anything is left of them: something else is
// wrong with them.
LossScale after_step(LossScale scale, bool overflowed);

}  // namespace dtrain::backend
