// A 3x3 convolution in bfloat16 and its gradient by the source, by AMX tiles. Both are sums over positions of the
// filter of products [pixels, channels] * [channels, channels]. The operand is copied once to rows with zeros beside
// them, so that sixteen pixels in a row are the rows of a tile at every position. A forward pass with a stride of two
// copies it to four planes, by the parity of a pixel's row and column; the gradient by the source then has four phases
// of results, each with positions of its own.
//
// Compiled for AMX and called only where CpuModel::has_amx_bf16 and has_avx512_bf16 are true.
#pragma once

#include <cstdint>

#include "tiles.hpp"

namespace dtrain::backend::cpu {

enum class TileDirection { forward, by_source };

// A layer of so many samples with a padding of one, channels last; h and w of the layer's source, both numbers of
// channels multiples of 32. Forward the operand is the source and the result the layer's; by_source the operand is the
// gradient by the layer's result, and the result that by its source.
struct TileConvolution {
  int count = 0, h = 0, w = 0, in = 0, out = 0;
  int stride = 1;  // or 2
  TileDirection direction = TileDirection::forward;

  constexpr bool is_forward() const { return direction == TileDirection::forward; }
  constexpr int operand_channels() const { return is_forward() ? in : out; }
  constexpr int result_channels() const { return is_forward() ? out : in; }
  // Pixels of the layer's result: a plane of the operand has as many and those of the padding, a phase has as many.
  constexpr int strided_h() const { return (h - 1) / stride + 1; }
  constexpr int strided_w() const { return (w - 1) / stride + 1; }
  constexpr int row() const { return strided_w() + 1; }
  constexpr int slot() const { return (strided_h() + 1) * row(); }
  constexpr int planes() const { return is_forward() ? stride * stride : 1; }
  constexpr int phases() const { return is_forward() ? 1 : stride * stride; }
  // Pixels of a plane of the operand: the last tile reads as far as the last position is away.
  constexpr std::int64_t plane() const { return std::int64_t{count} * slot() + kTileColumns + 2 * row() + 2; }
  // In numbers.
  constexpr std::int64_t padded_size() const { return planes() * plane() * operand_channels(); }
  constexpr std::int64_t weights_size() const { return std::int64_t{kTilePositions} * in * out; }
};

// All pointers but `weights` of the layer and `bias` are to whole cache lines.
void pad_operand(const TileConvolution& shape, const std::uint16_t* operand, std::uint16_t* padded);
// From [out][in][3][3] to what the direction multiplies by; `count`, `h` and `w` do not matter.
void pack_tile_weights(const TileConvolution& shape, const float* weights, std::uint16_t* packed);
// `bias` may be null; its channels are those of the result. Each result is summed position after position in float32
// and rounded once: its bits do not depend on the samples beside it.
void convolve_tiles(const TileConvolution& shape, const std::uint16_t* padded, const std::uint16_t* packed,
                    const float* bias, std::uint16_t* result);

}  // namespace dtrain::backend::cpu
