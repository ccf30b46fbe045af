// Convolutions as cuDNN computes them on a stream.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <optional>

#include "plans.hpp"

namespace dtrain::backend::cuda {

// A handle on a stream, with the memory that engines may use.
class Cudnn {
 public:
  Cudnn(const CudnnFunctions& functions, cudaStream_t stream, void* workspace, std::uint64_t workspace_bytes);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;

  const CudnnFunctions& functions;
  cudnnHandle_t handle = nullptr;
  void* const workspace;
  const std::uint64_t workspace_bytes;
};

// One convolution with its plan. `cudnn` must outlive it.
class CudnnConvolution {
 public:
  CudnnConvolution(Cudnn& cudnn, const Convolution& work);
  // False: no plan is left that works, compute it by definition. The first call settles which plan is used.
  bool run();

 private:
  Cudnn& cudnn_;
  Plans plans_;
  const Descriptor operands_;
  std::optional<Plan> plan_;
  bool settled_ = false;
};

}  // namespace dtrain::backend::cuda
