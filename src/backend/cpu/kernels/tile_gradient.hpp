// The gradient by the weights of a 3x3 convolution in bfloat16, by AMX tiles. With padding the nine positions of the
// filter are nine shifts of one sequence of pixels: in rows of w + 1 pixels, the last one zero, the source that meets
// gradient pixel p at position (y, x) is pixel p + y * (w + 1) + x. So the gradient is nine products of the source,
// turned so that a channel's pixels are neighbours, and the gradient's pixels in pairs, as the tiles want them. Each is
// copied once for all nine.
//
// Compiled for AMX and called only where CpuModel::has_amx_bf16 is true.
#pragma once

#include <cstdint>

namespace dtrain::backend::cpu {

constexpr int kTile = 16;               // rows of a tile, and float32 numbers of a row
constexpr int kTilePixels = 2 * kTile;  // what one instruction sums over
constexpr int kTilePositions = 9;

// `count` samples, channels last; the channels of both sides multiples of 32. The result has the source's height and
// width.
struct TileGradient {
  int count = 0, h = 0, w = 0, in = 0, out = 0;

  constexpr int row() const { return w + 1; }
  constexpr int steps_of_sample() const { return (h * row() + kTilePixels - 1) / kTilePixels; }
  constexpr int steps() const { return count * steps_of_sample(); }
  // Pixels of a sample of the turned source: the last step reads as far as the last position is away.
  constexpr int slot() const {
    const int read = steps_of_sample() * kTilePixels + 2 * row() + 2;
    return (read + kTilePixels - 1) / kTilePixels * kTilePixels;
  }
  // Pixels between channels of the turned source: an odd number of cache lines, so that channels lie in different sets.
  constexpr std::int64_t pitch() const {
    const std::int64_t lines = std::int64_t{count} * slot() / kTilePixels;
    return (lines | 1) * kTilePixels;
  }
  // In numbers.
  constexpr std::int64_t source_size() const { return pitch() * in; }
  constexpr std::int64_t gradient_size() const { return std::int64_t{steps()} * kTilePixels * out; }
  constexpr std::int64_t sums_size() const { return std::int64_t{kTilePositions} * in * out; }
};

// All pointers are to whole cache lines.
void turn_source(const TileGradient& shape, const std::uint16_t* source, std::uint16_t* turned);
void pair_gradient(const TileGradient& shape, const std::uint16_t* gradient, std::uint16_t* pairs);
// Adds to `sums`, [in / 32][out / 32][9][32][32], pixel after pixel: how samples are divided among calls does not show
// in the bits.
void add_tile_products(const TileGradient& shape, const std::uint16_t* turned, const std::uint16_t* pairs, float* sums);
// To the layout of the weights, [out][in][3][3].
void order_tile_sums(const TileGradient& shape, const float* sums, float* gradient);

}  // namespace dtrain::backend::cpu
