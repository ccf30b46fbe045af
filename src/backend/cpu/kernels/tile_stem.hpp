// The gradient by the weights of a network's first convolution in bfloat16, by AMX tiles. Pictures have so few channels
// that they fill no tile, but a channel at a position of the kernel is a tap, and there are enough of these: the
// gradient is the product of the taps, a row of pixels for each, turned so that pixels which meet neighbouring results
// are neighbours, and the results' gradient in pairs. A row of the picture is turned once for all rows of the kernel
// that meet it; some rows of results are computed together.
//
// Compiled for AMX and called only where CpuModel::has_amx_bf16 is true.
#pragma once

#include <cstdint>

#include "tiles.hpp"

namespace dtrain::backend::cpu {

constexpr int kStemRows = 8;  // of results, whose taps and pairs lie in the second cache together

// `count` samples of h by w pixels, channels last, under a square kernel. The result's channels are a multiple of 32.
struct TileStem {
  int count = 0, h = 0, w = 0, in = 0, out = 0;
  int kernel = 0, stride = 1, pad = 0;

  constexpr int out_h() const { return (h + 2 * pad - kernel) / stride + 1; }
  constexpr int out_w() const { return (w + 2 * pad - kernel) / stride + 1; }
  constexpr int taps() const { return in * kernel * kernel; }
  constexpr int rows() const { return (taps() + kTile - 1) / kTile * kTile; }  // those behind the taps mean nothing
  constexpr int steps() const { return (out_w() + kTileInner - 1) / kTileInner; }
  // Pixels of a tap's row: an odd number of cache lines, so that taps lie in different sets.
  constexpr int pitch() const { return (steps() | 1) * kTileInner; }
  // A row of a channel of the picture is `stride` planes: plane p has the pixels p, p + stride, p + 2 * stride, and so
  // on, counted with the padding, and zeros as far as a tap reads.
  constexpr int plane() const { return pitch() + kTileInner * ((kernel - 1) / stride / kTileInner + 1); }

  // In numbers.
  constexpr std::int64_t planes_size() const { return std::int64_t{h} * in * stride * plane(); }
  constexpr std::int64_t taps_size() const {
    const int picture_rows = (kStemRows - 1) * stride + kernel;
    return (std::int64_t{picture_rows} * in * kernel + kTile) * pitch();
  }
  constexpr std::int64_t pairs_size() const { return kStemRows * pairs_of_row() * out / kTileColumns; }
  // For 32 channels of the result.
  constexpr std::int64_t pairs_of_row() const { return std::int64_t{steps()} * kTileInner * kTileColumns; }
  constexpr std::int64_t room_size() const { return planes_size() + taps_size() + pairs_size(); }
  constexpr std::int64_t sums_size() const { return std::int64_t{rows()} * out; }
};

// Adds to `sums`, [kernel row, in, kernel column][out], row of results after row: how samples are divided among calls
// does not show in the bits. `room`: for room_size() numbers. `room` and `sums` are pointers to whole cache lines.
void add_stem_products(const TileStem& shape, const std::uint16_t* source, const std::uint16_t* gradient,
                       std::uint16_t* room, float* sums);
// To the layout of the weights, [out][in][kernel][kernel].
void order_stem_sums(const TileStem& shape, const float* sums, float* gradient);

}  // namespace dtrain::backend::cpu
