#include "fused_kernels.hpp"

#include "../bfloat16.hpp"

namespace dtrain::backend::cpu {

int FusedKernels::panel(int columns) const { return columns < widest_panel ? columns : widest_panel; }

const FusedKernels& fused_kernels() {
  static const bool has_avx512 = this_cpu().has_avx512;
  return has_avx512 ? fused_avx512::kFusedKernels : fused_avx2::kFusedKernels;
}

}  // namespace dtrain::backend::cpu
