// The images of a batch as a network takes them, where they may be bytes yet.
#pragma once

#include <vector>

#include <dtrain/backend/backend.hpp>

namespace dtrain::train {

// [n, c, h, w]: the batch's own, or made of its bytes in `room`.
const float* float_images(const backend::HostBatch& batch, const nn::Shape& shape, std::vector<float>& room);

}  // namespace dtrain::train
