// cuDNN as a table of functions, filled from the library that was found.
#pragma once

#include <cudnn.h>

#include <memory>
#include <string>

#include "../call.hpp"

namespace dtrain::backend::cuda {

// The one list of what is used of cuDNN.
#define DTRAIN_CUDNN_FUNCTIONS(apply)                                                                              \
  apply(cudnnCreate) apply(cudnnDestroy) apply(cudnnSetStream) apply(cudnnGetErrorString)                          \
      apply(cudnnCreateTensorDescriptor) apply(cudnnDestroyTensorDescriptor) apply(cudnnSetTensor4dDescriptor)     \
          apply(cudnnCreateFilterDescriptor) apply(cudnnDestroyFilterDescriptor) apply(cudnnSetFilter4dDescriptor) \
              apply(cudnnCreateConvolutionDescriptor) apply(cudnnDestroyConvolutionDescriptor)                     \
                  apply(cudnnSetConvolution2dDescriptor) apply(cudnnSetConvolutionGroupCount)                      \
                      apply(cudnnSetConvolutionMathType) apply(cudnnGetConvolutionForwardAlgorithm_v7)             \
                          apply(cudnnGetConvolutionBackwardDataAlgorithm_v7)                                       \
                              apply(cudnnGetConvolutionBackwardFilterAlgorithm_v7) apply(cudnnConvolutionForward)  \
                                  apply(cudnnConvolutionBackwardData) apply(cudnnConvolutionBackwardFilter)

struct CudnnFunctions {
#define DTRAIN_MEMBER(name) decltype(&::name) name = nullptr;
  DTRAIN_CUDNN_FUNCTIONS(DTRAIN_MEMBER)
#undef DTRAIN_MEMBER
};

// Throws Error naming the function that the library lacks.
CudnnFunctions load_cudnn(const std::string& file);

class Cudnn;

// One convolution with the algorithms that may compute it: the deterministic ones that cuDNN's heuristics name for the
// shape, in their order. They depend on shape, GPU and version alone, nothing is measured, so that ranks agree.
class CudnnConvolution {
 public:
  virtual ~CudnnConvolution() = default;
  // False: no algorithm is left that works, compute it by definition. The first call settles which one is used.
  virtual bool run() = 0;
};

// A handle on a stream, with the memory that algorithms may use. Must outlive its convolutions.
class Cudnn {
 public:
  Cudnn(const CudnnFunctions& functions, cudaStream_t stream, void* workspace, std::size_t workspace_bytes);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  std::unique_ptr<CudnnConvolution> prepare(const Convolution& convolution);

  const CudnnFunctions& functions;
  cudnnHandle_t handle = nullptr;
  void* const workspace;
  const std::size_t workspace_bytes;
};

}  // namespace dtrain::backend::cuda
