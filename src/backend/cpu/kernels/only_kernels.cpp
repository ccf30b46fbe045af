// The kernels of a build for one machine (-DDTRAIN_KERNELS=native), instead of select_kernels.cpp.
#include "kernels.hpp"

namespace dtrain::backend::cpu {

const Kernels& select_kernels() { return DTRAIN_ISA::kKernels; }

}  // namespace dtrain::backend::cpu
