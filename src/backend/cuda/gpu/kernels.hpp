#pragma once

#include <cuda_runtime.h>

#include "../call.hpp"

namespace dtrain::backend::cuda {

// Starts a body on the stream. Not for convolutions and milestones.
cudaError_t launch(const Work& work, cudaStream_t stream);

}  // namespace dtrain::backend::cuda
