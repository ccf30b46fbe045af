#pragma once

#include <cuda_runtime.h>

#include "../kernels/detection/work.hpp"

namespace dtrain::backend::cuda {

// Starts a kernel on the stream.
cudaError_t launch_detection(const DetectionWork& work, cudaStream_t stream);

}  // namespace dtrain::backend::cuda
