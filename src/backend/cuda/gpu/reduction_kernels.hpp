#pragma once

#include <cuda_runtime.h>

#include "../bodies/reduction.hpp"

namespace dtrain::backend::cuda {

// Start a body on the stream.
cudaError_t launch(const SumOfTwo& body, cudaStream_t stream);
cudaError_t launch(const NarrowFloats& body, cudaStream_t stream);
cudaError_t launch(const WidenFloats& body, cudaStream_t stream);

}  // namespace dtrain::backend::cuda
