// Sixteen floats as one value, through GCC's vector extension: the compiler splits it where registers are narrower.
// Kernel sources include no header of the standard library with code in it: an inline function compiled for AVX-512
// here could be the copy that the linker keeps for all.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

constexpr int kLanes = 16;
typedef float Vector __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

// bfloat16 in memory; arithmetic is always float.
struct Bfloat16 {
  uint16_t bits;
};

// load<V>(p) and store(p, v): V is a Vector or one float, p points at float or Bfloat16.
template <typename V>
inline V load(const float* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <typename V>
inline V load(const Bfloat16* p) {
  if constexpr (sizeof(V) == sizeof(float)) {
    const uint32_t bits = uint32_t{p->bits} << 16;
    float v;
    __builtin_memcpy(&v, &bits, sizeof v);
    return v;
  } else {
    Halves h;
    __builtin_memcpy(&h, p, sizeof h);
    return (V)(__builtin_convertvector(h, Words) << 16);
  }
}

template <typename V>
inline void store(float* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// Round to nearest even, NaN stays NaN: the same bits as to_bfloat16 of dtrain/base.
inline void store(Bfloat16* p, float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  p->bits = (uint16_t)(v != v ? (bits >> 16) | 0x40u : rounded);
}

inline void store(Bfloat16* p, Vector v) {
  const Words bits = (Words)v;
  const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  // A lane is unequal to itself where it is a NaN.  NOLINTNEXTLINE(misc-redundant-expression)
  const Words chosen = v != v ? (bits >> 16) | 0x40u : rounded;
  const Halves h = __builtin_convertvector(chosen, Halves);
  __builtin_memcpy(p, &h, sizeof h);
}

// NaN stays NaN.
template <typename V>
inline V relu(V v) {
  return v < V{} ? V{} : v;
}

template <typename V>
inline V where_positive(V condition, V v) {
  return condition > V{} ? v : V{};
}

}  // namespace
}  // namespace dtrain::backend::cpu::DTRAIN_ISA
