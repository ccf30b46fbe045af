// In which parts a contribution becomes final while backward goes from the loss to the images. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/base/accelerator.hpp>

#include "model.hpp"

namespace dtrain::backend::cuda {

struct ContributionPart {
  FloatRange floats;
  int node = 0;       // final when backward has done this node and all behind it
  FloatRange copies;  // the elements of the copies of weights whose gradients belong to it, gaps included
};

// What follows the gradients first, then these from the last to the first; a few MiB each, so that sending one is worth
// its start and most of them are sent while others are computed.
std::vector<ContributionPart> parts_of(const Model& model, std::int64_t least_floats = std::int64_t{2} << 20);

}  // namespace dtrain::backend::cuda
