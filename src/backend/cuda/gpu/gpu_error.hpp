#pragma once

#include <cuda_runtime.h>

#include <string>

#include <dtrain/base/error.hpp>

namespace dtrain::backend::cuda {

// The GPU has no memory left for what a call needs; the GPU itself is well.
class OutOfDeviceMemory : public DeviceFailure {
 public:
  using DeviceFailure::DeviceFailure;
};

inline constexpr const char* kIsTheGpuWell = "nvidia-smi and the kernel's log say whether the GPU is still well";

// Throws DeviceFailure where the GPU reports a failure, which may be that of earlier work than `what`, and
// OutOfDeviceMemory where it has no memory left.
void check(cudaError_t error, const std::string& what);

}  // namespace dtrain::backend::cuda
