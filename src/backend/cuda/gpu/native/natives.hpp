// Starts work with native kernels where they are to be trusted. Before one is used for a call, it is compared: its
// result, and then that of the definition, on what the call reads at that time. One that does not start, or leaves
// something else, is not tried again; the call's definition takes its place, and refusals() says so.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "outputs.hpp"

namespace dtrain::backend::cuda {

class Natives {
 public:
  // `room`: for results while they are compared. Of an operation that leaves more, so many are compared as have room.
  Natives(cudaStream_t stream, std::byte* room, std::uint64_t bytes) : stream_(stream), room_(room), bytes_(bytes) {}

  // Not for convolutions and markers. The first time a call comes, outside of a capture: it waits for the stream.
  void start(const Call& call);
  // Each is a call's name and the reason.
  const std::vector<std::string>& refusals() const { return refusals_; }

 private:
  enum class Way { native, definition };

  Way compare(const Call& call);
  bool start_native(const Call& call);      // false: the definition must do
  void start_definition(const Call& call);  // whose parts may have native kernels
  void start_kernels(const Call& call);     // none of them native
  bool differ(const Outputs& outputs, const std::string& name);
  template <typename T>
  bool differ(const Output& output, const std::byte* copy, const Tolerance& tolerance, const std::string& name);

  const cudaStream_t stream_;
  std::byte* const room_;
  const std::uint64_t bytes_;
  std::map<std::pair<std::string, std::size_t>, Way> ways_;  // by a call's name and kind of work
  std::vector<std::string> refusals_;
};

}  // namespace dtrain::backend::cuda
