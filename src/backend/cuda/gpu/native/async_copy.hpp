// Copies from a GPU's memory into the shared memory of a block that go on while their thread does. On a CPU, at once.
#pragma once

#include <cstring>

#include "../../kernel.hpp"

namespace dtrain::backend::cuda {

#ifdef __CUDACC__
__device__ inline std::uint32_t shared_address(const void* in_shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(in_shared));
}
#endif

// To be read by this thread alone, behind wait_for_copies().
template <typename T>
DTRAIN_KERNEL void begin_copy(const T* from, Pack<T>& to) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(shared_address(&to)), "l"(__cvta_generic_to_global(from))
               : "memory");
#else
  to = *reinterpret_cast<const Pack<T>*>(from);
#endif
}

// 16 bytes, zeros in place of what is not there.
DTRAIN_KERNEL inline void begin_copy(const void* from, bool there, unsigned char* to) {
  constexpr int kBytes = 16;
#ifdef __CUDA_ARCH__
  const int bytes = there ? kBytes : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
#else
  std::memset(to, 0, kBytes);
  if (there) std::memcpy(to, from, kBytes);
#endif
}

// Ends a group of copies, which may be empty.
DTRAIN_KERNEL inline void end_group() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Until at most so many groups, the last ones, are under way.
template <int Groups>
DTRAIN_KERNEL void wait_for_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
#endif
}

}  // namespace dtrain::backend::cuda
