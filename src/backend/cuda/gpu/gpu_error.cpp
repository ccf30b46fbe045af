#include "gpu_error.hpp"

#include <fmt/format.h>

namespace dtrain::backend::cuda {

void check(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // reported here, and not again behind the next launch
  // By the launch of a kernel that is not loaded yet, or of a recorded step.
  if (error == cudaErrorMemoryAllocation) {
    throw OutOfDeviceMemory(fmt::format("the GPU has no memory left, noticed at {}", what),
                            "use a smaller setting 'batch-size'");
  }
  throw DeviceFailure(
      fmt::format("the GPU failed, noticed at {}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)),
      kIsTheGpuWell);
}

}  // namespace dtrain::backend::cuda
