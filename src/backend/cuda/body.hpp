// What bodies are made of. A body is one kernel's arithmetic: a value with pointers and sizes, whose operator()(i) does
// the work of thread i and shares nothing with other threads. The GPU runs it for all i at once, a test on this CPU one
// after the other: the same source, so what is proven here is what runs there, up to the rounding of fused
// multiply-adds. Sums over many elements are taken in parts of fixed size, whose sums later bodies add in order; so no
// body needs a barrier, shared memory or an atomic operation, and the bits depend on the shape alone.
#pragma once

#include <cstdint>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/float16.hpp>

#ifdef __CUDACC__
#define DTRAIN_BODY __host__ __device__
#else
#define DTRAIN_BODY
#endif

namespace dtrain::backend::cuda {

// A bfloat16 or float16 as it lies in memory; arithmetic is float32.
struct Bf16 {
  bfloat16_bits bits;
};
struct Half {
  float16_bits bits;
};

DTRAIN_BODY inline float widen(float value) { return value; }
DTRAIN_BODY inline float widen(Bf16 value) { return from_bfloat16(value.bits); }
DTRAIN_BODY inline float widen(Half value) { return from_float16(value.bits); }
DTRAIN_BODY inline void narrow(float value, float& to) { to = value; }
DTRAIN_BODY inline void narrow(float value, Bf16& to) { to.bits = to_bfloat16(value); }
DTRAIN_BODY inline void narrow(float value, Half& to) { to.bits = to_float16(value); }

// 16 bytes: what a thread moves at once. Tensors begin at multiples of 256 bytes.
template <typename T>
struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(T);
  T values[size];
};

// How many groups of at most `pack` hold so many elements.
DTRAIN_BODY constexpr std::int64_t packs_of(std::int64_t elements, std::int64_t pack) {
  return (elements + pack - 1) / pack;
}

template <typename T>
DTRAIN_BODY Pack<T> load_pack(const T* from, std::int64_t first, std::int64_t total) {
  if (first + Pack<T>::size <= total) return *reinterpret_cast<const Pack<T>*>(from + first);
  Pack<T> pack{};
  for (int k = 0; k < Pack<T>::size; ++k) {  // indices known when compiled, so that packs stay in registers
    if (first + k < total) pack.values[k] = from[first + k];
  }
  return pack;
}

template <typename T>
DTRAIN_BODY void store_pack(const Pack<T>& pack, T* to, std::int64_t first, std::int64_t total) {
  if (first + Pack<T>::size <= total) {
    *reinterpret_cast<Pack<T>*>(to + first) = pack;
    return;
  }
  for (int k = 0; k < Pack<T>::size; ++k) {
    if (first + k < total) to[first + k] = pack.values[k];
  }
}

}  // namespace dtrain::backend::cuda
