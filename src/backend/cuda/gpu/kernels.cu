#include "kernels.hpp"

#include "launch_body.cuh"

namespace dtrain::backend::cuda {
namespace {

struct Launch {
  cudaStream_t stream;
  cudaError_t operator()(const Convolution&) const { return cudaErrorInvalidValue; }  // a library's work
  cudaError_t operator()(const Milestone&) const { return cudaErrorInvalidValue; }    // an event
  template <typename Body>
  cudaError_t operator()(const Body& body) const {
    return launch_body(body, stream);
  }
};

}  // namespace

cudaError_t launch(const Work& work, cudaStream_t stream) { return std::visit(Launch{stream}, work); }

}  // namespace dtrain::backend::cuda
