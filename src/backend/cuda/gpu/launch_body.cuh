// The one kernel: thread i of a body.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace dtrain::backend::cuda {

constexpr unsigned kBlock = 256;
// On one processor, so that one computes while another waits for memory: it bounds the registers of a thread.
constexpr unsigned kBlocksAtOnce = 2;

template <typename Body>
__global__ void __launch_bounds__(kBlock, kBlocksAtOnce) run(const Body body, const std::int64_t threads) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i < threads) body(i);
}

template <typename Body>
cudaError_t launch_body(const Body& body, cudaStream_t stream) {
  const std::int64_t threads = body.threads();
  if (threads <= 0) return cudaSuccess;
  const std::int64_t blocks = (threads + kBlock - 1) / kBlock;
  run<<<static_cast<unsigned>(blocks), kBlock, 0, stream>>>(body, threads);
  return cudaGetLastError();
}

}  // namespace dtrain::backend::cuda
