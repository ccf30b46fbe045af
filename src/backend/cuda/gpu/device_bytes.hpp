// What lies in a GPU's memory, for comparisons on the CPU.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gpu_error.hpp"

namespace dtrain::backend::cuda {

// Waits for the stream. Throws Error that names the work.
inline std::vector<std::byte> bytes_at(const void* memory, std::uint64_t size, cudaStream_t stream,
                                       const std::string& what) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  check(cudaMemcpyAsync(bytes.data(), memory, bytes.size(), cudaMemcpyDeviceToHost, stream), what);
  check(cudaStreamSynchronize(stream), what);
  return bytes;
}

}  // namespace dtrain::backend::cuda
