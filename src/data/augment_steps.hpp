// The steps of augment() behind the choice of pixels, for all ways that lead there.
#pragma once

#include <dtrain/data/augment.hpp>

#include "augment_draws.hpp"

namespace dtrain::data {

// Nothing but a window of the picture is asked for: no warp and no padding.
bool only_crops(const Augment& options);
bool jitters(const Augment& options);
// In place, on whole numbers 0..255 in planes.
void jitter(const Augment& options, const Draws& draws, const nn::Shape& shape, float* out);
void normalise(const Augment& options, const nn::Shape& shape, float* out);

}  // namespace dtrain::data
