#include "kernels.hpp"

#include "launch_kernel.cuh"

namespace dtrain::backend::cuda {
namespace {

struct Launch {
  cudaStream_t stream;
  cudaError_t operator()(const Convolution&) const { return cudaErrorInvalidValue; }  // a library's work
  cudaError_t operator()(const EventMarker&) const { return cudaErrorInvalidValue; }  // an event
  template <typename Kernel>
  cudaError_t operator()(const Kernel& kernel) const {
    return launch_kernel(kernel, stream);
  }
};

}  // namespace

cudaError_t launch(const Work& work, cudaStream_t stream) { return std::visit(Launch{stream}, work); }

}  // namespace dtrain::backend::cuda
