// Which operations a sample gets: jitter of its colours, and AutoAugment (Cubuk et al., 2019), RandAugment (Cubuk et
// al., 2020) and TrivialAugment Wide (Mueller and Hutter, 2021), with torchvision's operations and strengths.
#pragma once

#include <dtrain/data/augment.hpp>

#include "picture_changes.hpp"

namespace dtrain::data {

struct Change {
  Operation operation = Operation::identity;
  double amount = 0;
};
bool has_policy(const Augment& options);
// In their order; a pure function of its arguments.
std::vector<Change> draw_policy(const Augment& options, const SampleKey& key, const nn::Shape& shape);

// In place, on whole numbers 0..255 in planes.
void apply_policy(const Augment& options, const SampleKey& key, const nn::Shape& shape, float* planes);

}  // namespace dtrain::data
