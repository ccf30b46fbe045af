#include "gpu_error.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

namespace dtrain::backend::cuda {

void check(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // reported here, and not again behind the next launch
  throw Error(fmt::format("the GPU failed at {}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)),
              "the step was not applied and the last checkpoint is good: resume from it; nvidia-smi and the kernel's "
              "log say whether the GPU is still well");
}

}  // namespace dtrain::backend::cuda
