// No header of the standard library with code in it: see kernel_vector.hpp.
#include "tile_stem.hpp"

#include "tile_registers.hpp"

namespace dtrain::backend::cpu {
namespace {

void clear_lines(std::uint16_t* numbers, std::int64_t count) {
  for (std::int64_t k = 0; k < count; k += kTileInner) _mm512_store_si512(numbers + k, _mm512_setzero_si512());
}

// A sample's rows to [h][in][stride][plane]: pixel u of a padded row to place u / stride of plane u % stride. Padding
// and what lies behind the picture stay zero.
void take_planes(const TileStem& s, const std::uint16_t* sample, std::uint16_t* planes) {
  const std::int64_t row_size = std::int64_t{s.in} * s.stride * s.plane();
  for (int y = 0; y < s.h; ++y) {
    const std::uint16_t* pixel = sample + std::int64_t{y} * s.w * s.in;
    int plane = s.pad % s.stride, place = s.pad / s.stride;
    for (int x = 0; x < s.w; ++x, pixel += s.in) {
      for (int channel = 0; channel < s.in; ++channel) {
        planes[y * row_size + (std::int64_t{channel} * s.stride + plane) * s.plane() + place] = pixel[channel];
      }
      if (++plane < s.stride) continue;
      plane = 0;
      ++place;
    }
  }
}

// The pixels under each tap along the rows of the picture from `first` on, to [row, in, kernel column][pitch].
void take_taps(const TileStem& s, const std::uint16_t* planes, int first, int rows, std::uint16_t* taps) {
  for (int y = first; y < first + rows; ++y) {
    const bool inside = y >= 0 && y < s.h;
    for (int channel = 0; channel < s.in; ++channel) {
      const std::int64_t at = (std::int64_t{y} * s.in + channel) * s.stride * s.plane();
      const std::uint16_t* const row = planes + (inside ? at : 0);
      for (int x = 0; x < s.kernel; ++x, taps += s.pitch()) {
        const std::uint16_t* const from = row + x % s.stride * s.plane() + x / s.stride;
        for (int k = 0; k < s.steps() * kTileInner; k += kTileInner) {
          _mm512_store_si512(taps + k, inside ? _mm512_loadu_si512(from + k) : _mm512_setzero_si512());
        }
      }
    }
  }
}

// A row of the results' gradient to its place in [out / 32][kStemRows][steps][16 pairs][32][2]; `pairs` is that of its
// first 32 channels.
void take_pairs(const TileStem& s, const std::uint16_t* row, std::uint16_t* pairs) {
  for (int pair = 0; pair < s.steps() * kTile; ++pair) {
    const auto pixel = [&](int x, int channel) {
      if (x >= s.out_w()) return _mm256_setzero_si256();
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + std::int64_t{x} * s.out + channel));
    };
    for (int channel = 0; channel < s.out; channel += kTile) {
      _mm512_store_si512(pairs + channel / kTileColumns * kStemRows * s.pairs_of_row() +
                             std::int64_t{pair} * 2 * kTileColumns + channel % kTileColumns * 2,
                         pair_of(pixel(2 * pair, channel), pixel(2 * pair + 1, channel)));
    }
  }
}

// Tiles 0 to 3 are the sums of 32 taps, or of 16, and 32 channels over `rows` rows of results; 4 and 5 are taps, 6 and
// 7 halves of the channels.
template <bool TwoTiles>
[[gnu::noinline]] void add_tap_products(const TileStem& s, const std::uint16_t* taps, const std::uint16_t* pairs,
                                        int rows, float* sums) {
  constexpr long kPairsRow = kTileColumns * 4;
  const long sums_row = static_cast<long>(s.out) * 4, taps_row = static_cast<long>(s.pitch()) * 2;
  float* const lower = sums + std::int64_t{kTile} * s.out;
  _tile_loadd(0, sums, sums_row);
  _tile_loadd(1, sums + kTile, sums_row);
  if constexpr (TwoTiles) {
    _tile_loadd(2, lower, sums_row);
    _tile_loadd(3, lower + kTile, sums_row);
  }
  const int steps = s.steps();
  const std::int64_t next_row = std::int64_t{s.stride} * s.in * s.kernel * s.pitch();
  for (int row = 0; row < rows; ++row, taps += next_row) {
    for (int step = 0; step < steps; ++step, pairs += kTileInner * kTileColumns) {
      const std::uint16_t* const pixels = taps + std::int64_t{step} * kTileInner;
      _tile_loadd(4, pixels, taps_row);
      _tile_loadd(6, pairs, kPairsRow);
      _tile_loadd(7, pairs + 2 * kTile, kPairsRow);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      if constexpr (TwoTiles) {
        _tile_loadd(5, pixels + kTile * (taps_row / 2), taps_row);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
  _tile_stored(0, sums, sums_row);
  _tile_stored(1, sums + kTile, sums_row);
  if constexpr (TwoTiles) {
    _tile_stored(2, lower, sums_row);
    _tile_stored(3, lower + kTile, sums_row);
  }
}

void add_rows(const TileStem& s, const std::uint16_t* taps, const std::uint16_t* pairs, int rows, float* sums) {
  for (int out = 0; out < s.out; out += kTileColumns, pairs += kStemRows * s.pairs_of_row()) {
    int tap = 0;
    for (; tap + 2 * kTile <= s.rows(); tap += 2 * kTile) {
      add_tap_products<true>(s, taps + std::int64_t{tap} * s.pitch(), pairs, rows,
                             sums + std::int64_t{tap} * s.out + out);
    }
    if (tap < s.rows()) {
      add_tap_products<false>(s, taps + std::int64_t{tap} * s.pitch(), pairs, rows,
                              sums + std::int64_t{tap} * s.out + out);
    }
  }
}

}  // namespace

void add_stem_products(const TileStem& s, const std::uint16_t* source, const std::uint16_t* gradient,
                       std::uint16_t* room, float* sums) {
  std::uint16_t* const planes = room;
  std::uint16_t* const taps = planes + s.planes_size();
  std::uint16_t* const pairs = taps + s.taps_size();
  clear_lines(planes, s.planes_size());
  clear_lines(taps, s.taps_size());  // tiles also read rows behind the last tap, which nothing else writes
  const TileConfig config;
  _tile_loadconfig(&config);
  for (int sample = 0; sample < s.count; ++sample) {
    take_planes(s, source + std::int64_t{sample} * s.h * s.w * s.in, planes);
    const std::uint16_t* const results = gradient + std::int64_t{sample} * s.out_h() * s.out_w() * s.out;
    for (int first = 0; first < s.out_h(); first += kStemRows) {
      const int rows = s.out_h() - first < kStemRows ? s.out_h() - first : kStemRows;
      take_taps(s, planes, first * s.stride - s.pad, (rows - 1) * s.stride + s.kernel, taps);
      for (int row = 0; row < rows; ++row) {
        take_pairs(s, results + std::int64_t{first + row} * s.out_w() * s.out, pairs + row * s.pairs_of_row());
      }
      add_rows(s, taps, pairs, rows, sums);
    }
  }
  _tile_release();
}

void order_stem_sums(const TileStem& s, const float* sums, float* gradient) {
  for (int out = 0; out < s.out; ++out) {
    for (int in = 0; in < s.in; ++in) {
      for (int y = 0; y < s.kernel; ++y) {
        for (int x = 0; x < s.kernel; ++x) {
          *gradient++ = sums[(std::int64_t{y * s.in + in} * s.kernel + x) * s.out + out];
        }
      }
    }
  }
}

}  // namespace dtrain::backend::cpu
