// Cutout: which square of an image is taken away, and taking it away.
#pragma once

#include <dtrain/data/augment.hpp>

namespace dtrain::data {

nn::PixelSquare draw_cutout(const Augment& options, const SampleKey& key, const nn::Shape& shape);

// Makes the square of a normalised image 0; `out` as of augment().
void cut_out(const Augment& options, const SampleKey& key, const nn::Shape& shape, float* out);

}  // namespace dtrain::data
