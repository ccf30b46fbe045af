// Native kernels, as a test plays them: their barriers and shared memory cannot be played.
#pragma once

#include <functional>
#include <optional>

#include "gpu/native/native.hpp"

namespace dtrain::testing::cuda_runtime {

// From now on launch_native() is this; empty, as at the start: there are none.
void play_natives(std::function<std::optional<cudaError_t>(const backend::cuda::Work&, cudaStream_t)> launch);

}  // namespace dtrain::testing::cuda_runtime
