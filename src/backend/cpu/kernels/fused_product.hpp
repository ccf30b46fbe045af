// Products of matrices whose sums stay in registers. Compiled for AVX-512 with fused multiply-adds, and for no other
// instruction set; so their bits differ from those of MatrixProduct, which are the same on all.
#pragma once

#include <cstdint>

namespace dtrain::backend::cpu {

// Columns that are computed together.
constexpr int kFusedPanel = 64;
constexpr int fused_panel(int columns) { return columns < kFusedPanel ? columns : kFusedPanel; }

// out = left * right, or out + left * right. Each element is summed over k from 0 on, behind what is there.
struct FusedProduct {
  int rows = 0, inner = 0, columns = 0;  // columns: 16, 32, 48, or a multiple of 64
  const float* left = nullptr;           // element (row, k) at row * left_row + k * left_inner
  std::int64_t left_row = 0, left_inner = 0;
  const float* right = nullptr;  // element (k, column) at k * right_inner + column in its panel
  std::int64_t right_inner = 0, right_panel = 0;
  float* out = nullptr;  // element (row, column) at row * out_row + column
  std::int64_t out_row = 0;
  bool adds = false;
};

void fused_product(const FusedProduct& product);

}  // namespace dtrain::backend::cpu
