// Products of matrices, a panel of columns at a time. Each element is summed over k from 0 on, kDepth products in a
// register and then added to what is there, so that its bits depend on nothing but the two matrices.
#pragma once

#include "kernel_vector.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

constexpr int kTileRows = 4, kTileVectors = kPanelColumns / kLanes;
constexpr int kDepth = 256;

// panel[k][kPanelColumns] of the columns from `first` on; beyond the last one zeros.
inline void pack_panel(const MatrixProduct& p, int first, float* __restrict panel) {
  const int width = p.columns - first < kPanelColumns ? p.columns - first : kPanelColumns;
  for (int begin = 0; begin < p.inner; begin += kDepth) {
    const int end = begin + kDepth < p.inner ? begin + kDepth : p.inner;
    if (width < kPanelColumns) {
      __builtin_memset(panel + (int64_t)begin * kPanelColumns, 0, sizeof(float) * kPanelColumns * (end - begin));
    }
    if (p.right_transposed) {
      for (int column = 0; column < width; ++column) {
        const float* const from = p.right + (int64_t)(first + column) * p.inner;
        for (int k = begin; k < end; ++k) panel[(int64_t)k * kPanelColumns + column] = from[k];
      }
    } else {
      for (int k = begin; k < end; ++k) {
        const float* const from = p.right + (int64_t)k * p.columns + first;
        for (int column = 0; column < width; ++column) panel[(int64_t)k * kPanelColumns + column] = from[column];
      }
    }
  }
}

// out = before + factor * sum, `width` elements.
inline void store_sums(const MatrixProduct& p, int64_t at, bool goes_on, const float* sums, int width) {
  float* const out = p.out + at;
  const float* const before = goes_on ? out : p.addend ? p.addend + at : nullptr;
  const float weight = goes_on ? 1.0f : p.addend_factor;
  for (int k = 0; k < width; ++k) out[k] = (before ? weight * before[k] : 0.0f) + p.factor * sums[k];
}

template <int Rows>
inline void product_tile(const MatrixProduct& p, const float* __restrict panel, int row, int first, int begin,
                         int end) {
  Vector sums[Rows][kTileVectors] = {};
  for (int k = begin; k < end; ++k) {
    Vector right[kTileVectors];
    for (int v = 0; v < kTileVectors; ++v) right[v] = load<Vector>(panel + (int64_t)k * kPanelColumns + v * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const float left = p.left[(int64_t)(row + r) * p.inner + k];
      for (int v = 0; v < kTileVectors; ++v) sums[r][v] += left * right[v];
    }
  }
  const int width = p.columns - first < kPanelColumns ? p.columns - first : kPanelColumns;
  for (int r = 0; r < Rows; ++r) {
    float row_sums[kPanelColumns];
    for (int v = 0; v < kTileVectors; ++v) store(row_sums + v * kLanes, sums[r][v]);
    store_sums(p, (int64_t)(row + r) * p.columns + first, begin > 0, row_sums, width);
  }
}

void product_panel(const MatrixProduct& p, int first, float* panel) {
  pack_panel(p, first, panel);
  for (int begin = 0; begin < p.inner; begin += kDepth) {
    const int end = begin + kDepth < p.inner ? begin + kDepth : p.inner;
    int row = 0;
    for (; row + kTileRows <= p.rows; row += kTileRows) product_tile<kTileRows>(p, panel, row, first, begin, end);
    for (; row < p.rows; ++row) product_tile<1>(p, panel, row, first, begin, end);
  }
}

// Sums in kLanes doubles, which are added from the first on.
double sum_of_squares(const float* x, int64_t count) {
  double lanes[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= count; k += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += (double)x[k + lane] * x[k + lane];
  }
  for (int lane = 0; k + lane < count; ++lane) lanes[lane] += (double)x[k + lane] * x[k + lane];
  double sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
  return sum;
}

}  // namespace
}  // namespace dtrain::backend::cpu::DTRAIN_ISA
