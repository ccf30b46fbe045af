// No header of the standard library with code in it: see kernel_vector.hpp.
#include "tile_gradient.hpp"

#include <immintrin.h>

namespace dtrain::backend::cpu {
namespace {

constexpr int kPanel = 2 * kTile;  // channels that are computed together, on both sides
// Steps between two reads of the sums: what they read of both sides, and the sums, stay in the first and second cache.
constexpr int kSteps = 8;

alignas(64) constexpr std::uint16_t kZeros[kTile] = {};

// One channel of two pixels in each 32 bits, the earlier pixel in the low half.
__m512i pair_of(const std::uint16_t* first, const std::uint16_t* second) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first)));
  const __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(second)));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// Exchanges rows and columns of 16x16 numbers of 32 bits. A register has four lanes of four numbers.
void turn(__m512i rows[kTile]) {
  __m512i halfway[kTile];
  // Within lanes: row 4 k + j gets, as lane l, the column 4 l + j of the rows from 4 k to 4 k + 3.
  for (int k = 0; k < 8; ++k) {
    halfway[2 * k] = _mm512_unpacklo_epi32(rows[2 * k], rows[2 * k + 1]);
    halfway[2 * k + 1] = _mm512_unpackhi_epi32(rows[2 * k], rows[2 * k + 1]);
  }
  for (int k = 0; k < 4; ++k) {
    rows[4 * k] = _mm512_unpacklo_epi64(halfway[4 * k], halfway[4 * k + 2]);
    rows[4 * k + 1] = _mm512_unpackhi_epi64(halfway[4 * k], halfway[4 * k + 2]);
    rows[4 * k + 2] = _mm512_unpacklo_epi64(halfway[4 * k + 1], halfway[4 * k + 3]);
    rows[4 * k + 3] = _mm512_unpackhi_epi64(halfway[4 * k + 1], halfway[4 * k + 3]);
  }
  // Then whole lanes: row 4 l + j gets lane l of the rows j, 4 + j, 8 + j and 12 + j.
  constexpr int kEvenLanes = 0x88, kOddLanes = 0xdd;
  for (int j = 0; j < 4; ++j) {
    halfway[j] = _mm512_shuffle_i32x4(rows[j], rows[4 + j], kEvenLanes);
    halfway[4 + j] = _mm512_shuffle_i32x4(rows[j], rows[4 + j], kOddLanes);
    halfway[8 + j] = _mm512_shuffle_i32x4(rows[8 + j], rows[12 + j], kEvenLanes);
    halfway[12 + j] = _mm512_shuffle_i32x4(rows[8 + j], rows[12 + j], kOddLanes);
  }
  for (int j = 0; j < 4; ++j) {
    rows[j] = _mm512_shuffle_i32x4(halfway[j], halfway[8 + j], kEvenLanes);
    rows[8 + j] = _mm512_shuffle_i32x4(halfway[j], halfway[8 + j], kOddLanes);
    rows[4 + j] = _mm512_shuffle_i32x4(halfway[4 + j], halfway[12 + j], kEvenLanes);
    rows[12 + j] = _mm512_shuffle_i32x4(halfway[4 + j], halfway[12 + j], kOddLanes);
  }
}

// Channels from `channel` on of the pixel at (y, x) of a sample; zeros outside.
const std::uint16_t* pixel_at(const TileGradient& s, const std::uint16_t* sample, int channels, int channel, int y,
                              int x) {
  const bool inside = y >= 0 && y < s.h && x >= 0 && x < s.w;
  return inside ? sample + (std::int64_t{y} * s.w + x) * channels + channel : kZeros;
}

// The block of these channels, [9][32][32], with a row for each channel of the source.
template <typename Sums>
Sums* sums_of(const TileGradient& s, Sums* sums, int in, int out) {
  return sums + (std::int64_t{in / kPanel} * (s.out / kPanel) + out / kPanel) * kTilePositions * kPanel * kPanel;
}

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {kTile, kTile, kTile, kTile, kTile, kTile, kTile, kTile};
};
static_assert(sizeof(TileConfig) == 64);

// Adds the products of `steps` steps for 32 channels on both sides at one position. `source` is at the first pixel that
// the position reads, `pairs` at the first step; step k begins at pixel pixels[k]. Tiles 0 to 3 are the sums, 4 and 5
// the channels of the source, 6 and 7 those of the gradient.
void add_products(const TileGradient& s, const std::uint16_t* source, const std::uint16_t* pairs,
                  const std::int64_t* pixels, int steps, float* sums) {
  const std::int64_t pitch = s.pitch();
  const long source_row = static_cast<long>(pitch * 2), pairs_row = kPanel * 4;
  constexpr long sums_row = kPanel * 4;
  float* const lower = sums + kTile * kPanel;
  _tile_loadd(0, sums, sums_row);
  _tile_loadd(1, sums + kTile, sums_row);
  _tile_loadd(2, lower, sums_row);
  _tile_loadd(3, lower + kTile, sums_row);
  for (int k = 0; k < steps; ++k) {
    const std::uint16_t* const left = source + pixels[k];
    const std::uint16_t* const right = pairs + std::int64_t{k} * kTilePixels * kPanel;
    _tile_loadd(4, left, source_row);
    _tile_loadd(6, right, pairs_row);
    _tile_loadd(7, right + 2 * kTile, pairs_row);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + kTile * pitch, source_row);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, sums_row);
  _tile_stored(1, sums + kTile, sums_row);
  _tile_stored(2, lower, sums_row);
  _tile_stored(3, lower + kTile, sums_row);
}

}  // namespace

// To [in][pitch]: a channel's pixels are neighbours. Sixteen pairs of pixels of sixteen channels are read as rows of
// channels and written as rows of pixels.
void turn_source(const TileGradient& s, const std::uint16_t* source, std::uint16_t* turned) {
  const std::int64_t pitch = s.pitch();
  for (int sample = 0; sample < s.count; ++sample) {
    const std::uint16_t* const from = source + std::int64_t{sample} * s.h * s.w * s.in;
    for (int first = 0; first < s.slot(); first += kTilePixels) {
      for (int channel = 0; channel < s.in; channel += kTile) {
        const auto at = [&](int pixel) {  // counted with the padding above and left of the picture
          return pixel_at(s, from, s.in, channel, pixel / s.row() - 1, pixel % s.row() - 1);
        };
        __m512i rows[kTile];
        for (int pair = 0; pair < kTile; ++pair) rows[pair] = pair_of(at(first + 2 * pair), at(first + 2 * pair + 1));
        turn(rows);
        std::uint16_t* const to = turned + channel * pitch + std::int64_t{sample} * s.slot() + first;
        for (int row = 0; row < kTile; ++row) _mm512_store_si512(to + row * pitch, rows[row]);
      }
    }
  }
}

// To [out / 32][steps][16 pairs][32][2].
void pair_gradient(const TileGradient& s, const std::uint16_t* gradient, std::uint16_t* pairs) {
  const std::int64_t panel = std::int64_t{s.steps()} * kTilePixels * kPanel;
  for (int sample = 0; sample < s.count; ++sample) {
    const std::uint16_t* const from = gradient + std::int64_t{sample} * s.h * s.w * s.out;
    std::uint16_t* const to = pairs + std::int64_t{sample} * s.steps_of_sample() * kTilePixels * kPanel;
    for (int pair = 0; pair < s.steps_of_sample() * kTile; ++pair) {
      for (int channel = 0; channel < s.out; channel += kTile) {
        const auto at = [&](int pixel) { return pixel_at(s, from, s.out, channel, pixel / s.row(), pixel % s.row()); };
        _mm512_store_si512(to + channel / kPanel * panel + std::int64_t{pair} * 2 * kPanel + channel % kPanel * 2,
                           pair_of(at(2 * pair), at(2 * pair + 1)));
      }
    }
  }
}

void add_tile_products(const TileGradient& s, const std::uint16_t* turned, const std::uint16_t* pairs, float* sums) {
  const TileConfig config;
  _tile_loadconfig(&config);
  const std::int64_t panel = std::int64_t{s.steps()} * kTilePixels * kPanel;
  for (int out = 0; out < s.out; out += kPanel) {
    for (int in = 0; in < s.in; in += kPanel) {
      const std::uint16_t* const source = turned + in * s.pitch();
      for (int first = 0; first < s.steps(); first += kSteps) {
        const int steps = s.steps() - first < kSteps ? s.steps() - first : kSteps;
        std::int64_t pixels[kSteps];
        for (int k = 0; k < steps; ++k) {
          const int sample = (first + k) / s.steps_of_sample(), step = (first + k) % s.steps_of_sample();
          pixels[k] = std::int64_t{sample} * s.slot() + step * kTilePixels;
        }
        for (int position = 0; position < kTilePositions; ++position) {
          add_products(s, source + position / 3 * s.row() + position % 3,
                       pairs + out / kPanel * panel + std::int64_t{first} * kTilePixels * kPanel, pixels, steps,
                       sums_of(s, sums, in, out) + position * kPanel * kPanel);
        }
      }
    }
  }
  _tile_release();
}

// Tile by tile, through a copy with a row for each output channel, from which the nine positions are gathered.
void order_tile_sums(const TileGradient& s, const float* sums, float* gradient) {
  alignas(64) float turned[kTilePositions][kTile][kTile];  // [position][out][in]
  for (int out = 0; out < s.out; out += kTile) {
    for (int in = 0; in < s.in; in += kTile) {
      const float* const block = sums_of(s, sums, in, out) + in % kPanel * kPanel + out % kPanel;
      for (int position = 0; position < kTilePositions; ++position) {
        __m512i rows[kTile];
        for (int k = 0; k < kTile; ++k) rows[k] = _mm512_loadu_si512(block + (position * kPanel + k) * kPanel);
        turn(rows);
        for (int k = 0; k < kTile; ++k) _mm512_store_si512(turned[position][k], rows[k]);
      }
      for (int out_row = 0; out_row < kTile; ++out_row) {
        float* to = gradient + ((out + out_row) * std::int64_t{s.in} + in) * kTilePositions;
        for (int in_row = 0; in_row < kTile; ++in_row) {
          for (int position = 0; position < kTilePositions; ++position) *to++ = turned[position][out_row][in_row];
        }
      }
    }
  }
}

}  // namespace dtrain::backend::cpu
