// Random erasing (Zhong et al. 2020) as timm's RandomErasing does it: a rectangle of the normalised picture becomes
// noise, or the mean.
#pragma once

#include <span>

#include <dtrain/data/augment.hpp>

namespace dtrain::data {

// Empty where the sample is left alone.
struct ErasedBox {
  int top = 0, left = 0, h = 0, w = 0;
};
ErasedBox draw_erasing(const Augment& options, const nn::Shape& shape, RandomStream& random);

// In place; `out` as of augment().
void erase(const Augment& options, const SampleKey& key, const nn::Shape& shape, float* out);

}  // namespace dtrain::data
