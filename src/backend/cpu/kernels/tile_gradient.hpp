// The gradient by the weights of a 3x3 convolution in bfloat16, by AMX tiles. With padding the nine positions of the
// filter are nine shifts of one sequence of pixels: in rows of w + 1 pixels, the last one zero, the source that meets
// gradient pixel p at position (y, x) is pixel p + y * (w + 1) + x. So the gradient is nine products of the source,
// turned so that a channel's pixels are neighbours, and the gradient's pixels in pairs, as the tiles want them. Each is
// copied once for all nine. With a stride of two the source is four planes, by the parity of a pixel's row and column,
// and each position is a shift of one of them.
//
// Compiled for AMX and called only where CpuModel::has_amx_bf16 is true.
#pragma once

#include <cstdint>

#include "tiles.hpp"

namespace dtrain::backend::cpu {

// `count` samples of h by w pixels, channels last; a padding of one; the source's channels multiples of 16, the
// gradient's of 32.
struct TileGradient {
  int count = 0, h = 0, w = 0, in = 0, out = 0;
  int stride = 1;  // or 2

  constexpr int gradient_h() const { return (h - 1) / stride + 1; }
  constexpr int gradient_w() const { return (w - 1) / stride + 1; }
  constexpr int row() const { return gradient_w() + 1; }
  constexpr int planes() const { return stride * stride; }
  constexpr int steps_of_sample() const { return (gradient_h() * row() + kTileInner - 1) / kTileInner; }
  constexpr int steps() const { return count * steps_of_sample(); }
  // How far the position is from the pixel, in its plane.
  constexpr int shift(int y, int x) const { return y / stride * row() + x / stride; }
  // Pixels of a sample of a plane of the turned source: the last step reads as far as the last position is away.
  constexpr int slot() const {
    const int read = steps_of_sample() * kTileInner + shift(2, 2);
    return (read + kTileInner - 1) / kTileInner * kTileInner;
  }
  // Where the position's pixels begin in the turned source, from the first one of a channel.
  constexpr std::int64_t position(int y, int x) const {
    return std::int64_t{y % stride * stride + x % stride} * count * slot() + shift(y, x);
  }
  // Pixels between channels of the turned source: an odd number of cache lines, so that channels lie in different sets.
  constexpr std::int64_t pitch() const {
    const std::int64_t lines = std::int64_t{planes()} * count * slot() / kTileInner;
    return (lines | 1) * kTileInner;
  }
  // In numbers.
  constexpr std::int64_t source_size() const { return pitch() * in; }
  constexpr std::int64_t gradient_size() const { return std::int64_t{steps()} * kTileInner * out; }
  constexpr std::int64_t sums_size() const { return std::int64_t{kTilePositions} * in * out; }
};

// All pointers are to whole cache lines, but for TileSums::gradient.
void turn_source(const TileGradient& shape, const std::uint16_t* source, std::uint16_t* turned);
void pair_gradient(const TileGradient& shape, const std::uint16_t* gradient, std::uint16_t* pairs);
// The sums that a call adds its samples to. The first call of a gradient starts them, the last one completes them.
struct TileSums {
  float* sums = nullptr;      // [in / 16][out / 32][9][2][16][16]
  bool begins = false;        // the first call: it starts from zeros and reads no sums
  float* gradient = nullptr;  // the last call writes the sums there, as the weights lie, [out][in][3][3]; else null

  // A call for all samples keeps the sums of a block of channels in the cache until they are in the gradient.
  constexpr bool is_only() const { return begins && gradient != nullptr; }
  static constexpr std::int64_t size(const TileGradient& shape, bool is_only) {
    return is_only ? kTilePositions * kTile * kTileColumns : shape.sums_size();
  }
};
// Adds pixel after pixel: how samples are divided among calls does not show in the bits.
void add_tile_products(const TileGradient& shape, const std::uint16_t* turned, const std::uint16_t* pairs,
                       const TileSums& to);

}  // namespace dtrain::backend::cpu
