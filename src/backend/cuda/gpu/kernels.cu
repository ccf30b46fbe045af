// The one kernel: thread i of a body.
#include "kernels.hpp"

namespace dtrain::backend::cuda {
namespace {

constexpr unsigned kBlock = 256;

template <typename Body>
__global__ void __launch_bounds__(kBlock) run(const Body body, const std::int64_t threads) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i < threads) body(i);
}

struct Launch {
  cudaStream_t stream;
  cudaError_t operator()(const Convolution&) const { return cudaErrorInvalidValue; }  // a library's work
  template <typename Body>
  cudaError_t operator()(const Body& body) const {
    const std::int64_t threads = body.threads();
    if (threads <= 0) return cudaSuccess;
    const std::int64_t blocks = (threads + kBlock - 1) / kBlock;
    run<<<static_cast<unsigned>(blocks), kBlock, 0, stream>>>(body, threads);
    return cudaGetLastError();
  }
};

}  // namespace

cudaError_t launch(const Work& work, cudaStream_t stream) { return std::visit(Launch{stream}, work); }

}  // namespace dtrain::backend::cuda
