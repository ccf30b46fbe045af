// Parts of the kernels with fused multiply-adds.
#pragma once

#include "fused_kernels.hpp"
#include "kernel_vector.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {

// Sums that stay in registers beside a row of `right` and a value of `left`: there are 32 registers with AVX-512, 16
// with AVX2. A panel that has only two of them is read along fewer cache lines.
constexpr int kSums = kRegisterLanes == 16 ? 24 : 12;
constexpr int kPanel = kRegisterLanes == 16 ? kWidestPanel : 16;

constexpr int panel_of(int columns) { return columns < kPanel ? columns : kPanel; }

namespace {

// Each lane's number to the nearest bfloat16, ties to even; NaN stays NaN.
inline Register rounded_to_bfloat16(const Register& v) {
  const Words bits = (Words)v;
  const Words rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  // A lane is unequal to itself where it is a NaN.  NOLINTNEXTLINE(misc-redundant-expression)
  return (Register)((v != v ? bits | 0x400000u : rounded) & 0xffff0000u);
}

}  // namespace

void fused_product(const FusedProduct& p);
extern const WinogradKernels kWinogradKernels;
extern const DenseKernels kDenseKernels;

}  // namespace dtrain::backend::cpu::DTRAIN_ISA
