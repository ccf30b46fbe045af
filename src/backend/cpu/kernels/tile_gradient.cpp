// No header of the standard library with code in it: see kernel_vector.hpp.
#include "tile_gradient.hpp"

#include "passing_stores.hpp"
#include "tile_registers.hpp"

namespace dtrain::backend::cpu {
namespace {

// Steps between two reads of the sums.
constexpr int kSteps = 64;
constexpr int kSums = kTile * kTile;         // of a tile
constexpr int kPositionSums = 2 * kSums;     // of a position
constexpr int kRowSums = 3 * kPositionSums;  // of a row of the filter

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

// One pixel of a sample, or one of zeros outside of it.
struct Pixel {
  const std::uint16_t* channels = nullptr;

  __m256i at(int channel) const {
    return channels ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(channels + channel)) : _mm256_setzero_si256();
  }
};

Pixel pixel_at(const std::uint16_t* sample, int h, int w, int channels, int y, int x) {
  const bool inside = y >= 0 && y < h && x >= 0 && x < w;
  return {inside ? sample + (std::int64_t{y} * w + x) * channels : nullptr};
}

// The block of these channels, [9][2][16][16], with a row for each channel of the source.
float* sums_of(const TileGradient& s, float* sums, int in, int out) {
  return sums +
         (std::int64_t{in / kTile} * (s.out / kTileColumns) + out / kTileColumns) * kTilePositions * kPositionSums;
}

// A row of the filter over `steps` steps: where each step's pixels begin in a channel, by position.
struct FilterRow {
  const std::uint16_t* positions[3];
  const std::int64_t* pixels;  // of the steps, from there
  long channel_bytes;          // between channels of the source
  int steps;
  bool begins;  // its sums begin with zeros
};

// Adds the products of a filter's row for 16 channels of the source and 32 of the gradient, whose `pairs` begin at the
// first step. Tiles 0 to 5 are the sums, two of each position; 6 is a position of the source, 7 half of the gradient's
// channels. Six products want seven loads of tiles, as many as the first cache keeps up with.
[[gnu::noinline]] void add_products(const FilterRow& row, const std::uint16_t* pairs, float* sums) {
  constexpr long kPairsRow = kTileColumns * 4, kSumsRow = kTile * 4;
  if (row.begins) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
  } else {
    _tile_loadd(0, sums, kSumsRow);
    _tile_loadd(1, sums + kSums, kSumsRow);
    _tile_loadd(2, sums + 2 * kSums, kSumsRow);
    _tile_loadd(3, sums + 3 * kSums, kSumsRow);
    _tile_loadd(4, sums + 4 * kSums, kSumsRow);
    _tile_loadd(5, sums + 5 * kSums, kSumsRow);
  }
  for (int k = 0; k < row.steps; ++k) {
    const std::int64_t pixel = row.pixels[k];
    const std::uint16_t* const lower = pairs + std::int64_t{k} * kTileInner * kTileColumns;
    const std::uint16_t* const upper = lower + 2 * kTile;
    _tile_loadd(6, row.positions[0] + pixel, row.channel_bytes);
    _tile_loadd(7, lower, kPairsRow);
    _tile_dpbf16ps(0, 6, 7);
    _tile_loadd(7, upper, kPairsRow);
    _tile_dpbf16ps(1, 6, 7);
    _tile_loadd(6, row.positions[1] + pixel, row.channel_bytes);
    _tile_dpbf16ps(3, 6, 7);
    _tile_loadd(7, lower, kPairsRow);
    _tile_dpbf16ps(2, 6, 7);
    _tile_loadd(6, row.positions[2] + pixel, row.channel_bytes);
    _tile_dpbf16ps(4, 6, 7);
    _tile_loadd(7, upper, kPairsRow);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_stored(0, sums, kSumsRow);
  _tile_stored(1, sums + kSums, kSumsRow);
  _tile_stored(2, sums + 2 * kSums, kSumsRow);
  _tile_stored(3, sums + 3 * kSums, kSumsRow);
  _tile_stored(4, sums + 4 * kSums, kSumsRow);
  _tile_stored(5, sums + 5 * kSums, kSumsRow);
}

// Sixteen columns of nine rows, `row` numbers apart, to sixteen places `pitch` apart, nine numbers each. Lanes of four
// numbers are turned as by turn(), the ninth row is copied number by number.
void gather_columns(const float* from, int row, float* to, int pitch) {
  const auto at = [&](int k) { return _mm512_loadu_si512(from + k * row); };
  const auto quarters = [&](int first, __m512i out[4]) {  // lane l of register j: four numbers of column 4 l + j
    const __m512i low = _mm512_unpacklo_epi32(at(first), at(first + 1));
    const __m512i low2 = _mm512_unpacklo_epi32(at(first + 2), at(first + 3));
    const __m512i high = _mm512_unpackhi_epi32(at(first), at(first + 1));
    const __m512i high2 = _mm512_unpackhi_epi32(at(first + 2), at(first + 3));
    out[0] = _mm512_unpacklo_epi64(low, low2);
    out[1] = _mm512_unpackhi_epi64(low, low2);
    out[2] = _mm512_unpacklo_epi64(high, high2);
    out[3] = _mm512_unpackhi_epi64(high, high2);
  };
  __m512i lower[4], upper[4];
  quarters(0, lower);
  quarters(4, upper);
  const auto put = [&](int column, __m256i eight) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + column * pitch), eight);
  };
  const __m512i first_lanes = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i last_lanes = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  for (int j = 0; j < 4; ++j) {
    const __m512i first = _mm512_permutex2var_epi64(lower[j], first_lanes, upper[j]);
    const __m512i last = _mm512_permutex2var_epi64(lower[j], last_lanes, upper[j]);
    put(j, _mm512_castsi512_si256(first));
    put(4 + j, _mm512_extracti64x4_epi64(first, 1));
    put(8 + j, _mm512_castsi512_si256(last));
    put(12 + j, _mm512_extracti64x4_epi64(last, 1));
  }
  for (int column = 0; column < kTile; ++column) to[column * pitch + 8] = from[8 * row + column];
}

// A block to the layout of the weights, where the nine positions of a channel of the source are neighbours. Through a
// copy, for the rows of many channels lie in the same few sets of the first cache.
void order_sums(const TileGradient& s, const float* block, int in, int out, float* gradient) {
  constexpr int kRow = kTile * kTilePositions;
  const bool streams = passes_caches(gradient, s.sums_size());
  alignas(64) float ordered[kTile][kRow];
  for (int half = 0; half < 2; ++half) {
    for (int in_row = 0; in_row < kTile; ++in_row) {
      gather_columns(block + half * kSums + in_row * kTile, kPositionSums, &ordered[0][in_row * kTilePositions], kRow);
    }
    for (int k = 0; k < kTile; ++k) {
      float* const to = gradient + ((out + half * kTile + k) * std::int64_t{s.in} + in) * kTilePositions;
      for (int i = 0; i < kRow; i += kTile) {
        const __m512 numbers = _mm512_load_ps(&ordered[k][i]);
        if (streams) {
          _mm512_stream_ps(to + i, numbers);
        } else {
          _mm512_storeu_ps(to + i, numbers);
        }
      }
    }
  }
}

// The source's plane with these parities, to [in][pitch] from `turned` on: a channel's pixels are neighbours. Sixteen
// pairs of pixels of sixteen channels are read as rows of channels and written as rows of pixels.
void turn_plane(const TileGradient& s, const std::uint16_t* sample, int odd_row, int odd_column,
                std::uint16_t* turned) {
  const std::int64_t pitch = s.pitch();
  Cursor next{s.row()};
  for (int first = 0; first < s.slot(); first += kTileInner) {
    Pixel pixels[kTileInner];
    for (Pixel& pixel : pixels) {  // counted with the padding above and left of the picture
      pixel = pixel_at(sample, s.h, s.w, s.in, next.y * s.stride + odd_row - 1, next.x * s.stride + odd_column - 1);
      next.next();
    }
    for (int channel = 0; channel < s.in; channel += kTile) {
      __m512i rows[kTile];
      for (int pair = 0; pair < kTile; ++pair) {
        rows[pair] = pair_of(pixels[2 * pair].at(channel), pixels[2 * pair + 1].at(channel));
      }
      turn(rows);
      std::uint16_t* const to = turned + channel * pitch + first;
      for (int row = 0; row < kTile; ++row) _mm512_store_si512(to + row * pitch, rows[row]);
    }
  }
}

}  // namespace

// To [in][planes][samples][slot].
void turn_source(const TileGradient& s, const std::uint16_t* source, std::uint16_t* turned) {
  for (int plane = 0; plane < s.planes(); ++plane) {
    for (int sample = 0; sample < s.count; ++sample) {
      turn_plane(s, source + std::int64_t{sample} * s.h * s.w * s.in, plane / s.stride, plane % s.stride,
                 turned + (std::int64_t{plane} * s.count + sample) * s.slot());
    }
  }
}

// To [out / 32][steps][16 pairs][32][2].
void pair_gradient(const TileGradient& s, const std::uint16_t* gradient, std::uint16_t* pairs) {
  const std::int64_t panel = std::int64_t{s.steps()} * kTileInner * kTileColumns;
  const int h = s.gradient_h(), w = s.gradient_w();
  for (int sample = 0; sample < s.count; ++sample) {
    const std::uint16_t* const from = gradient + std::int64_t{sample} * h * w * s.out;
    std::uint16_t* const to = pairs + std::int64_t{sample} * s.steps_of_sample() * kTileInner * kTileColumns;
    Cursor next{s.row()};
    for (int pair = 0; pair < s.steps_of_sample() * kTile; ++pair) {
      const Pixel first = pixel_at(from, h, w, s.out, next.y, next.x);
      next.next();
      const Pixel second = pixel_at(from, h, w, s.out, next.y, next.x);
      next.next();
      for (int channel = 0; channel < s.out; channel += kTile) {
        _mm512_store_si512(
            to + channel / kTileColumns * panel + std::int64_t{pair} * 2 * kTileColumns + channel % kTileColumns * 2,
            pair_of(first.at(channel), second.at(channel)));
      }
    }
  }
}

// The source's channels are in the inner loop: so the gradient is written along its rows.
void add_tile_products(const TileGradient& s, const std::uint16_t* turned, const std::uint16_t* pairs,
                       const TileSums& to) {
  const TileConfig config;
  _tile_loadconfig(&config);
  const std::int64_t panel = std::int64_t{s.steps()} * kTileInner * kTileColumns;
  for (int out = 0; out < s.out; out += kTileColumns) {
    for (int in = 0; in < s.in; in += kTile) {
      const std::uint16_t* const source = turned + in * s.pitch();
      float* const block = to.is_only() ? to.sums : sums_of(s, to.sums, in, out);
      for (int first = 0; first < s.steps(); first += kSteps) {
        const int steps = s.steps() - first < kSteps ? s.steps() - first : kSteps;
        std::int64_t pixels[kSteps];
        for (int k = 0; k < steps; ++k) {
          const int sample = (first + k) / s.steps_of_sample(), step = (first + k) % s.steps_of_sample();
          pixels[k] = std::int64_t{sample} * s.slot() + step * kTileInner;
        }
        for (int y = 0; y < 3; ++y) {
          const FilterRow row{{source + s.position(y, 0), source + s.position(y, 1), source + s.position(y, 2)},
                              pixels,
                              static_cast<long>(s.pitch() * 2),
                              steps,
                              to.begins && first == 0};
          add_products(row, pairs + out / kTileColumns * panel + std::int64_t{first} * kTileInner * kTileColumns,
                       block + y * kRowSums);
        }
      }
      if (to.gradient) order_sums(s, block, in, out, to.gradient);
    }
  }
  _tile_release();
  if (to.gradient) _mm_sfence();  // what passed the caches must be there before others may read it
}

}  // namespace dtrain::backend::cpu
