// What kernels are made of. A kernel is a value with pointers and sizes, whose operator()(i)
// does the work of thread i and shares nothing with other threads. The GPU runs it for all i at once, a test on this
// CPU one after the other: the same source, so what is proven here is what runs there, up to the rounding of fused
// multiply-adds. Sums over many elements are taken in parts of fixed size, whose sums later kernels add in order; so no
// kernel needs a barrier, shared memory or an atomic operation, and the bits depend on the shape alone.
#pragma once

#include <cstdint>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/float16.hpp>

#ifdef __CUDACC__
#define DTRAIN_KERNEL __host__ __device__
// Before a loop over an array whose elements must stay in registers: so each index is known when compiled.
#define DTRAIN_UNROLL _Pragma("unroll")
#else
#define DTRAIN_KERNEL
#define DTRAIN_UNROLL
#endif

namespace dtrain::backend::cuda {

// A bfloat16 or float16 as it lies in memory; arithmetic is float32.
struct Bf16 {
  bfloat16_bits bits;
};
struct Half {
  float16_bits bits;
};

// A GPU has instructions for what a CPU puts together of ten, and its memory would wait for those. The same numbers;
// only which NaN a NaN becomes is its own choice.
DTRAIN_KERNEL inline float widen(float value) { return value; }
DTRAIN_KERNEL inline float widen(Bf16 value) { return from_bfloat16(value.bits); }
DTRAIN_KERNEL inline float widen(Half value) {
#ifdef __CUDA_ARCH__
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
#else
  return from_float16(value.bits);
#endif
}
DTRAIN_KERNEL inline void narrow(float value, float& to) { to = value; }
DTRAIN_KERNEL inline void narrow(float value, Bf16& to) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(value));
#else
  to.bits = to_bfloat16(value);
#endif
}
DTRAIN_KERNEL inline void narrow(float value, Half& to) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(value));
#else
  to.bits = to_float16(value);
#endif
}

// 16 bytes: what a thread moves at once. Tensors begin at multiples of 256 bytes.
template <typename T>
struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(T);
  T values[size];
};

// How many groups of at most `pack` hold so many elements.
DTRAIN_KERNEL constexpr std::int64_t packs_of(std::int64_t elements, std::int64_t pack) {
  return (elements + pack - 1) / pack;
}

// In one move: a GPU's compiler, which sees a pack's values apart, would else store them one by one.
template <typename T>
DTRAIN_KERNEL void store_whole(const Pack<T>& pack, T* to) {
#ifdef __CUDA_ARCH__
  const uint4 words = *reinterpret_cast<const uint4*>(&pack);
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(to)), "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
#else
  *reinterpret_cast<Pack<T>*>(to) = pack;
#endif
}

template <typename T>
DTRAIN_KERNEL Pack<T> load_pack(const T* from, std::int64_t first, std::int64_t total) {
  if (first + Pack<T>::size <= total) return *reinterpret_cast<const Pack<T>*>(from + first);
  Pack<T> pack{};
  for (int k = 0; k < Pack<T>::size; ++k) {  // indices known when compiled, so that packs stay in registers
    if (first + k < total) pack.values[k] = from[first + k];
  }
  return pack;
}

template <typename T>
DTRAIN_KERNEL void store_pack(const Pack<T>& pack, T* to, std::int64_t first, std::int64_t total) {
  if (first + Pack<T>::size <= total) return store_whole(pack, to + first);
  for (int k = 0; k < Pack<T>::size; ++k) {
    if (first + k < total) to[first + k] = pack.values[k];
  }
}

}  // namespace dtrain::backend::cuda
