// What kernels for AMX share. Included by sources that are compiled for AMX, and by nothing else.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "tiles.hpp"

namespace dtrain::backend::cpu {

// All eight tiles full.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {kTile, kTile, kTile, kTile, kTile, kTile, kTile, kTile};
};
static_assert(sizeof(TileConfig) == 64);

// The numbers of both in turn, in bfloat16, the first one's in the low halves.
inline __m512i pair_of(__m256i first, __m256i second) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(first), _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
}

// Goes through the pixels of rows, one after another.
struct Cursor {
  int row, y = 0, x = 0;

  void next() {
    if (++x < row) return;
    x = 0;
    ++y;
  }
};

}  // namespace dtrain::backend::cpu
