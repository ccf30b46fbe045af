// A device that is this CPU: runs the very bodies that a GPU would run, thread by thread, and convolutions by their
// definition. What it shows is all arithmetic and all order of the cuda backend; what it cannot show is what a GPU and
// its libraries do with it.
#pragma once

#include <memory>

#include "device.hpp"

namespace dtrain::testing {

// Memory is poisoned with NaN, so that what is read before it is written shows.
std::shared_ptr<backend::cuda::Device> make_replay_device(std::uint64_t free_bytes = std::uint64_t{8} << 30);
std::unique_ptr<backend::Backend> make_replay_backend();

}  // namespace dtrain::testing
