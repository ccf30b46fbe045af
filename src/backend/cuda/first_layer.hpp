// How a network's first layer is computed, where that is not a convolution of the image as it is. Pure.
#pragma once

#include <optional>

#include <dtrain/backend/dtype.hpp>
#include <dtrain/nn/graph.hpp>

#include "kernels/convolution.hpp"
#include "kernels/input.hpp"
#include "kernels/update.hpp"
#include "kernels/whitening.hpp"

namespace dtrain::backend::cuda {

struct FirstLayer {
  int convolution = -1;  // the node, if one is computed in one of these ways; it reads the image and nothing else does
  // The convolution is computed on blocks of pixels: see PixelBlocks.
  std::optional<PixelBlocks> blocks;
  // Or it is computed together with the activation behind it, which is this node: see WhitenImages.
  int activation = -1;
};
FirstLayer first_layer_of(const nn::Graph& graph, DType dtype);

// A convolution of stride 2 as one of stride 1 on blocks of 2 x 2 pixels, whose channels lie side by side: the same
// products, and products with zeros where a kernel ends within a block and where channels are filled up to whole
// vectors. nullopt: this would take more multiplications, or more memory would be read and written. In two bytes
// libraries fill channels up to whole vectors themselves, for which they read the image and write a larger one.
std::optional<PixelBlocks> pixel_blocks(const ConvolutionShape& plain, DType dtype);

// The shape of the convolution on blocks.
ConvolutionShape shape_on_blocks(const ConvolutionShape& plain, const PixelBlocks& blocks);

// The weight of a convolution that begins there in the copies and in the flat buffer, for blocks or (null) without.
PackedWeight packed_weight(std::int64_t first, std::int64_t flat, const ConvolutionShape& plain,
                           const PixelBlocks* blocks);

}  // namespace dtrain::backend::cuda
