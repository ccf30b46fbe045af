#include "gpu_error.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

namespace dtrain::backend::cuda {

void check(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // reported here, and not again behind the next launch
  throw DeviceFailure(
      fmt::format("the GPU failed, noticed at {}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)),
      "nvidia-smi and the kernel's log say whether the GPU is still well");
}

}  // namespace dtrain::backend::cuda
