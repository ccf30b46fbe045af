#include "kernels.hpp"

namespace dtrain::backend::cpu {

const Kernels& select_kernels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq")) {
    return avx512::kKernels;
  }
  if (__builtin_cpu_supports("avx2")) return avx2::kKernels;
#endif
  return generic::kKernels;
}

}  // namespace dtrain::backend::cpu
