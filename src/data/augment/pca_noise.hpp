// The noise of Krizhevsky et al. 2012, as MXNet's ImageRecordIter has it: each picture is moved along the three
// directions in which ImageNet's colours vary, by random shares of how much they do.
#pragma once

#include <array>

#include <dtrain/data/augment.hpp>

namespace dtrain::data {

// What is added to R, G and B, on the scale 0 to 255.
std::array<float, 3> draw_pca_shift(const Augment& options, const SampleKey& key);

// In place, on whole numbers 0..255 in planes, which they stay; grey pictures have no colours to move.
void add_pca_noise(const Augment& options, const SampleKey& key, const nn::Shape& shape, float* planes);

}  // namespace dtrain::data
