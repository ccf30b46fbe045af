// A device that is this CPU: runs the very kernels that a GPU would run, thread by thread, and convolutions by their
// definition. What it shows is all arithmetic and all order of the cuda backend; what it cannot show is what a GPU and
// its libraries do with it.
#pragma once

#include <functional>
#include <memory>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend::cuda {

class Device;

// Memory is poisoned with NaN, so that what is read before it is written shows.
struct ReplayWays {
  bool fuses = false;         // does at once what a device may (convolution_fusion.hpp), by its definition
  bool wavers = false;        // never computes the same gradient again
  int* recordings = nullptr;  // counts them; may be null
  std::function<void(int)> at_marker = {};  // is told what is reached, while the work behind it is still to be done
};

std::shared_ptr<Device> make_replay_device(std::uint64_t free_bytes = std::uint64_t{8} << 30,
                                           const ReplayWays& ways = {});
std::unique_ptr<Backend> make_replay_backend(std::uint64_t free_bytes = std::uint64_t{8} << 30,
                                             const ReplayWays& ways = {});
std::unique_ptr<Backend> make_large_replay_backend();  // as a parameter of tests
// Never computes the same gradient again, as a GPU where sums are made in whatever order.
std::unique_ptr<Backend> make_wavering_replay_backend(std::uint64_t free_bytes = std::uint64_t{8} << 30);

}  // namespace dtrain::backend::cuda
