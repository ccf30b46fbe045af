// Native kernels: what a GPU does instead of an operation's definition (call.hpp). A native kernel may use shared
// memory, shuffles, clusters, TMA and tensor cores. It gives the same bits in every run and, for what it adds up, those
// of the definition: tiles are of a fixed size, and what they leave is added in a fixed order. Tensor cores add in an
// order of their own. Natives compares what a kernel leaves (outputs.hpp) with the definition before the kernel is
// used.
//
// To add one: an operation with a definition in call.hpp, which unit tests replay on a CPU; the kernel in a .cu of this
// folder, named in CMakeLists.txt with NATIVE; its launch in native.cpp; what it leaves in outputs.hpp.
// tests/judge/machine_code.py looks at its instructions without a GPU, and tests/gpu/native_test.cpp compares it with
// its definition on one.
//
// product.hpp is something else: an engine for convolutions, which the device chooses beside cuDNN's and must prove.
#pragma once

#include <cuda_runtime.h>

#include <optional>

#include "../../call.hpp"

namespace dtrain::backend::cuda {

// Starts the operation's native kernel on the stream, on the current GPU; nullopt: there is none for this work on it.
// Where it does not start, nothing was done, and the definition will do.
std::optional<cudaError_t> launch_native(const Work& work, cudaStream_t stream);

}  // namespace dtrain::backend::cuda
