// The steps of augment() behind the choice of pixels, for all ways that lead there.
#pragma once

#include <dtrain/data/augment.hpp>

#include "augment_draws.hpp"

namespace dtrain::data {

// Nothing but a window of the picture is asked for: no warp and no padding.
bool only_crops(const Augment& options);
// Values of pixels are changed before they are normalised.
bool changes_pixels(const Augment& options);
// In place, on whole numbers 0..255 in planes.
void change_pixels(const Augment& options, const Draws& draws, const nn::Shape& shape, float* out);
// Where the output lies in an image that is neither warped nor resized, nor smaller than the output.
nn::PixelPlace draw_place(const Image& image, const Augment& options, const SampleKey& key, const nn::Shape& shape);
void normalise(const Augment& options, const nn::Shape& shape, float* out);

}  // namespace dtrain::data
