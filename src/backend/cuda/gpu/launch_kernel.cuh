// The one kernel: thread i of a kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace dtrain::backend::cuda {

constexpr unsigned kBlock = 256;
// On one processor, so that one computes while another waits for memory: it bounds the registers of a thread.
constexpr unsigned kBlocksAtOnce = 2;

template <typename Kernel>
__global__ void __launch_bounds__(kBlock, kBlocksAtOnce) run(const Kernel kernel, const std::int64_t threads) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i < threads) kernel(i);
}

template <typename Kernel>
cudaError_t launch_kernel(const Kernel& kernel, cudaStream_t stream) {
  const std::int64_t threads = kernel.threads();
  if (threads <= 0) return cudaSuccess;
  const std::int64_t blocks = (threads + kBlock - 1) / kBlock;
  run<<<static_cast<unsigned>(blocks), kBlock, 0, stream>>>(kernel, threads);
  return cudaGetLastError();
}

}  // namespace dtrain::backend::cuda
