// How a first convolution of stride 2 sees an image: in blocks of 2 x 2 pixels.
#pragma once

#include "../kernel.hpp"

namespace dtrain::backend::cuda {

// An image and the zeros around it as blocks of 2 x 2 pixels, for a convolution of stride 2: block (y, x) of h x w
// begins with the pixel (2 y - pad_h, 2 x - pad_w). Channel (2 p + q) * in + k of a block is channel k of its pixel (p,
// q); the last ones are zeros.
struct PixelBlocks {
  static constexpr std::int32_t side = 2;
  std::int32_t in, in_h, in_w, pad_h, pad_w;
  std::int32_t channels = 0, h = 0, w = 0;
  // Blocks that so many rows or columns of a kernel reach over, which begins at the beginning of a block.
  DTRAIN_KERNEL static constexpr std::int32_t blocks_of(std::int32_t kernel) { return (kernel + side - 1) / side; }
  // Channels of a block, filled up to whole vectors.
  DTRAIN_KERNEL static constexpr std::int32_t channels_of(std::int32_t in, std::int32_t vector) {
    return (side * side * in + vector - 1) / vector * vector;
  }
  friend bool operator==(const PixelBlocks&, const PixelBlocks&) = default;
};

}  // namespace dtrain::backend::cuda
