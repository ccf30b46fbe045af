// A norm that keeps slabs of its values on the chip between its sums and what is made with them, in one cooperative
// launch: all its blocks run at the same time, so that they can wait for each other. CUDA's documentation allows such a
// launch in a graph; no GPU has run this yet.
//
// Beside NCCL: a transfer of another stream may hold processors of this GPU while it waits for its other end on another
// GPU, where such a norm runs or waits. That is no deadlock, because no chain of waits closes. A transfer waits for its
// other end; where that is not resident yet, it waits for the kernels that hold its processors. A norm is one of them
// only when it runs: CUDA promises that all blocks of a cooperative launch are resident together, which we take to mean
// that a norm holds no processor before all of them fit. A norm that runs waits for its own blocks alone, and ends.
// launch_norm_slabs() asks whether an empty GPU has room for all blocks, as CUDA does; a busy one makes it wait.
// If a GPU kept a part of them resident, the waits of src/comm/nccl/link.hpp would bound the damage: at their deadline
// the rank aborts NCCL, which frees its processors for the norm, and the ranks go on in a new generation.
#pragma once

#include <cuda_runtime.h>

#include "slab_choice.hpp"

namespace dtrain::backend::cuda {

// For the three types of values: NormForward and NormBackward. The chip must be the one of the stream.
template <typename Work>
cudaError_t launch_norm_slabs(const Work& work, const SlabPlan& plan, const ChipFacts& chip, cudaStream_t stream);

}  // namespace dtrain::backend::cuda
