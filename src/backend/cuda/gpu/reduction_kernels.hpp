#pragma once

#include <cuda_runtime.h>

#include "../kernels/reduction.hpp"

namespace dtrain::backend::cuda {

// Start a kernel on the stream.
cudaError_t launch(const SumOfTwo& kernel, cudaStream_t stream);
cudaError_t launch(const NarrowFloats& kernel, cudaStream_t stream);
cudaError_t launch(const WidenFloats& kernel, cudaStream_t stream);

}  // namespace dtrain::backend::cuda
