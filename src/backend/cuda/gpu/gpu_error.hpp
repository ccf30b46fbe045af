#pragma once

#include <cuda_runtime.h>

#include <string>

namespace dtrain::backend::cuda {

// Throws DeviceFailure where the GPU reports a failure, which may be that of earlier work than `what`.
void check(cudaError_t error, const std::string& what);

}  // namespace dtrain::backend::cuda
