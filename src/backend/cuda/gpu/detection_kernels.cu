#include "detection_kernels.hpp"

#include "launch_kernel.cuh"

namespace dtrain::backend::cuda {

cudaError_t launch_detection(const DetectionWork& work, cudaStream_t stream) {
  return work.kernel.visit([stream](const auto& kernel) { return launch_kernel(kernel, stream); });
}

}  // namespace dtrain::backend::cuda
