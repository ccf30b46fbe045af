// What stands in for dtrain's own products of matrices (backend/cuda/gpu/native/product.hpp). The GPU has none of them
// until a test says so.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "product.hpp"

namespace dtrain::testing::cuda_runtime {

struct OwnProducts {
  bool there = false;
  // Null: the work's definition computes it. Else asks the stream for something (enqueue()) and says how that went.
  std::function<cudaError_t(const backend::cuda::Convolution& work, cudaStream_t stream)> start = {};
};
OwnProducts& own_products();

}  // namespace dtrain::testing::cuda_runtime
