#pragma once

#include <driver_types.h>

#include <string>

namespace dtrain::testing::cuda_runtime {

// Thrown: what a call answers, and what it found where that is a fault of the caller.
struct Refusal {
  cudaError_t error;
  std::string finding;
};

}  // namespace dtrain::testing::cuda_runtime
