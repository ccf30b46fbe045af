// A norm that keeps slabs of its values on the chip between its sums and what is made with them, in one cooperative
// launch: all its blocks run at the same time, so that they can wait for each other. It begins when no kernel of
// another stream, as NCCL's, is in the way. CUDA's documentation allows such a launch in a graph; no GPU has run this
// yet.
#pragma once

#include <cuda_runtime.h>

#include "slab_choice.hpp"

namespace dtrain::backend::cuda {

// For the three types of values: NormForward and NormBackward. The chip must be the one of the stream.
template <typename Work>
cudaError_t launch_norm_slabs(const Work& work, const SlabPlan& plan, const ChipFacts& chip, cudaStream_t stream);

}  // namespace dtrain::backend::cuda
