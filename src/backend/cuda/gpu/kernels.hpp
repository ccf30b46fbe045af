#pragma once

#include <cuda_runtime.h>

#include "../call.hpp"

namespace dtrain::backend::cuda {

// Starts a kernel on the stream. Not for operations and markers.
cudaError_t launch(const Work& work, cudaStream_t stream);

}  // namespace dtrain::backend::cuda
