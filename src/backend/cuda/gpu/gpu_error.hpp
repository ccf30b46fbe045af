#pragma once

#include <cuda_runtime.h>

#include <string>

namespace dtrain::backend::cuda {

// Throws Error that names the work where the GPU reports a failure.
void check(cudaError_t error, const std::string& what);

}  // namespace dtrain::backend::cuda
