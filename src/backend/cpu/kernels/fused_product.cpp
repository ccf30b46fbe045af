// No header of the standard library with code in it: see kernel_vector.hpp.
#include "kernel_fused.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

// Rows * Vectors sums fit into the registers beside a row of `right` and a value of `left`.
template <int Rows, int Vectors>
inline void product_tile(const FusedProduct& p, const float* left, const float* right, float* out) {
  Register sums[Rows][Vectors];
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) {
      sums[r][v] = p.adds ? load<Register>(out + r * p.out_row + v * kRegisterLanes) : Register{};
    }
  }
  for (int k = 0; k < p.inner; ++k) {
    Register row[Vectors];
    for (int v = 0; v < Vectors; ++v) row[v] = load<Register>(right + k * p.right_inner + v * kRegisterLanes);
    for (int r = 0; r < Rows; ++r) {
      const float value = left[r * p.left_row + k * p.left_inner];
      for (int v = 0; v < Vectors; ++v) sums[r][v] += value * row[v];
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) store(out + r * p.out_row + v * kRegisterLanes, sums[r][v]);
  }
}

template <int Rows, int Vectors>
inline void last_rows(const FusedProduct& p, int rows, const float* left, const float* right, float* out) {
  if (rows == Rows) return product_tile<Rows, Vectors>(p, left, right, out);
  if constexpr (Rows > 1) last_rows<Rows - 1, Vectors>(p, rows, left, right, out);
}

template <int Vectors>
inline void product_panel(const FusedProduct& p, const float* right, float* out) {
  constexpr int kRows = kSums / Vectors;
  int row = 0;
  for (; row + kRows <= p.rows; row += kRows) {
    product_tile<kRows, Vectors>(p, p.left + row * p.left_row, right, out + row * p.out_row);
  }
  if (row < p.rows) {
    last_rows<kRows - 1, Vectors>(p, p.rows - row, p.left + row * p.left_row, right, out + row * p.out_row);
  }
}

}  // namespace

void fused_product(const FusedProduct& p) {
  const int panel = panel_of(p.columns);
  for (int first = 0; first < p.columns; first += panel) {
    const float* const right = p.right + first / panel * p.right_panel;
    switch (panel / kRegisterLanes) {
      case 1:
        product_panel<1>(p, right, p.out + first);
        break;
      case 2:
        product_panel<2>(p, right, p.out + first);
        break;
      case 3:
        product_panel<3>(p, right, p.out + first);
        break;
      default:
        product_panel<4>(p, right, p.out + first);
    }
  }
}

extern const FusedKernels kFusedKernels = {kPanel, fused_product, &kWinogradKernels, &kDenseKernels};

}  // namespace dtrain::backend::cpu::DTRAIN_ISA
