#pragma once

#include <vector>

#include "bfloat16.hpp"
#include "kernels/fused_kernels.hpp"

namespace dtrain::backend::cpu {

// The kernels of all instruction sets that this CPU can run.
inline std::vector<const FusedKernels*> fused_kernels_here() {
  std::vector<const FusedKernels*> kernels;
  if (this_cpu().has_avx2_fma) kernels.push_back(&fused_avx2::kFusedKernels);
  if (this_cpu().has_avx512) kernels.push_back(&fused_avx512::kFusedKernels);
  return kernels;
}

}  // namespace dtrain::backend::cpu
