// Sixteen floats as one value, in as many registers as the instruction set needs for them: so all variants do the same
// operations in the same order. GCC's vectors wider than a register would do too, but live in memory, and their
// comparisons are taken apart into single floats.
// Kernel sources include no header of the standard library with code in it: an inline function compiled for AVX-512
// here could be the copy that the linker keeps for all.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

// Registers of the instruction set that this is compiled for.
typedef float Register __attribute__((vector_size(__BIGGEST_ALIGNMENT__)));
typedef uint32_t Words __attribute__((vector_size(__BIGGEST_ALIGNMENT__)));
typedef uint16_t Halves __attribute__((vector_size(__BIGGEST_ALIGNMENT__ / 2)));

constexpr int kLanes = 16;
constexpr int kRegisterLanes = sizeof(Register) / sizeof(float), kRegisters = kLanes / kRegisterLanes;

struct Vector {
  Register at[kRegisters];
};

// function(register of each), register by register.
template <typename Function>
inline Vector each_register(Function function, const Vector& a, const Vector& b) {
  Vector result;
  for (int k = 0; k < kRegisters; ++k) result.at[k] = function(a.at[k], b.at[k]);
  return result;
}

inline Vector splat(float value) {
  Vector result;
  for (int k = 0; k < kRegisters; ++k) result.at[k] = Register{} + value;
  return result;
}

inline Vector operator+(const Vector& a, const Vector& b) {
  return each_register([](Register x, Register y) { return x + y; }, a, b);
}
inline Vector operator-(const Vector& a, const Vector& b) {
  return each_register([](Register x, Register y) { return x - y; }, a, b);
}
inline Vector operator*(const Vector& a, const Vector& b) {
  return each_register([](Register x, Register y) { return x * y; }, a, b);
}
inline Vector operator-(const Vector& a, float b) { return a - splat(b); }
inline Vector operator*(const Vector& a, float b) { return a * splat(b); }
inline Vector operator*(float a, const Vector& b) { return splat(a) * b; }
inline Vector& operator+=(Vector& a, const Vector& b) { return a = a + b; }

// bfloat16 in memory; arithmetic is always float.
struct Bfloat16 {
  uint16_t bits;
};

// load<V>(p) and store(p, v): V is a Vector, a Register or one float, p points at float or Bfloat16.
template <typename V>
inline V load(const float* p) {
  V v;
  if constexpr (requires { v.at; }) {  // copied as a whole it would lie in memory
    for (int k = 0; k < kRegisters; ++k) __builtin_memcpy(&v.at[k], p + k * kRegisterLanes, sizeof v.at[k]);
  } else {
    __builtin_memcpy(&v, p, sizeof v);
  }
  return v;
}

template <typename V>
inline V load(const Bfloat16* p) {
  if constexpr (sizeof(V) == sizeof(float)) {
    const uint32_t bits = uint32_t{p->bits} << 16;
    float v;
    __builtin_memcpy(&v, &bits, sizeof v);
    return v;
  } else if constexpr (requires(V v) { v.at; }) {
    V v;
    for (int k = 0; k < kRegisters; ++k) v.at[k] = load<Register>(p + k * kRegisterLanes);
    return v;
  } else {
    Halves h;
    __builtin_memcpy(&h, p, sizeof h);
    return (V)(__builtin_convertvector(h, Words) << 16);
  }
}

template <typename V>
inline void store(float* p, const V& v) {
  if constexpr (requires { v.at; }) {
    for (int k = 0; k < kRegisters; ++k) __builtin_memcpy(p + k * kRegisterLanes, &v.at[k], sizeof v.at[k]);
  } else {
    __builtin_memcpy(p, &v, sizeof v);
  }
}

// Round to nearest even, NaN stays NaN: the same bits as to_bfloat16 of dtrain/base.
inline void store(Bfloat16* p, float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  p->bits = (uint16_t)(v != v ? (bits >> 16) | 0x40u : rounded);
}

inline void store(Bfloat16* p, const Register& v) {
  const Words bits = (Words)v;
  const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  // A lane is unequal to itself where it is a NaN.  NOLINTNEXTLINE(misc-redundant-expression)
  const Words chosen = v != v ? (bits >> 16) | 0x40u : rounded;
  const Halves h = __builtin_convertvector(chosen, Halves);
  __builtin_memcpy(p, &h, sizeof h);
}

inline void store(Bfloat16* p, const Vector& v) {
  for (int k = 0; k < kRegisters; ++k) store(p + k * kRegisterLanes, v.at[k]);
}

// a > b ? x : y, lane by lane.
template <typename V>
inline V where_greater(const V& a, const V& b, const V& x, const V& y) {
  if constexpr (requires { a.at; }) {
    V result;
    for (int k = 0; k < kRegisters; ++k) result.at[k] = where_greater(a.at[k], b.at[k], x.at[k], y.at[k]);
    return result;
  } else {
    return a > b ? x : y;
  }
}

// a == b ? x : y, lane by lane.
template <typename V>
inline V where_equal(const V& a, const V& b, const V& x, const V& y) {
  if constexpr (requires { a.at; }) {
    V result;
    for (int k = 0; k < kRegisters; ++k) result.at[k] = where_equal(a.at[k], b.at[k], x.at[k], y.at[k]);
    return result;
  } else {
    return a == b ? x : y;
  }
}

// NaN stays NaN.
template <typename V>
inline V relu(const V& v) {
  return where_greater(V{}, v, V{}, v);
}

template <typename V>
inline V where_positive(const V& condition, const V& v) {
  return where_greater(condition, V{}, v, V{});
}

// function(v) of a float; of a Vector, the function of each of its registers.
template <typename Function>
inline float map_registers(Function function, float v) {
  return function(v);
}
template <typename Function>
inline Vector map_registers(Function function, const Vector& v) {
  return each_register([&](Register x, Register) { return function(x); }, v, v);
}
template <typename Function>
inline float map_registers(Function function, float a, float b) {
  return function(a, b);
}
template <typename Function>
inline Vector map_registers(Function function, const Vector& a, const Vector& b) {
  return each_register(function, a, b);
}

}  // namespace
}  // namespace dtrain::backend::cpu::DTRAIN_ISA
