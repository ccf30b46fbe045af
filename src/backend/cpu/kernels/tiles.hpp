// The sizes of AMX tiles, as kernels and their callers know them.
#pragma once

namespace dtrain::backend::cpu {

constexpr int kTile = 16;                // rows of a tile, and float32 numbers of a row
constexpr int kTileInner = 2 * kTile;    // numbers in bfloat16 of a row: what one instruction sums over
constexpr int kTileColumns = 2 * kTile;  // channels of a result that kernels compute together, in two tiles
constexpr int kTilePositions = 9;        // of a 3x3 filter

}  // namespace dtrain::backend::cpu
