// A device that is this CPU: runs the very bodies that a GPU would run, thread by thread, and convolutions by their
// definition. What it shows is all arithmetic and all order of the cuda backend; what it cannot show is what a GPU and
// its libraries do with it.
#pragma once

#include <functional>
#include <memory>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend::cuda {

class Device;

// Memory is poisoned with NaN, so that what is read before it is written shows.
// Tells a test what a replay is asked for. All may be empty.
struct ReplayWatch {
  int* recordings = nullptr;                   // counts them
  std::function<void(int)> at_milestone = {};  // what is reached, while the work behind it is still to be done
};

// `joins`: does at once what a device may do at once (joining.hpp), by its definition.
std::shared_ptr<Device> make_replay_device(std::uint64_t free_bytes = std::uint64_t{8} << 30, bool joins = false,
                                           const ReplayWatch& watch = {});
std::unique_ptr<Backend> make_replay_backend(std::uint64_t free_bytes = std::uint64_t{8} << 30, bool joins = false,
                                             const ReplayWatch& watch = {});
std::unique_ptr<Backend> make_large_replay_backend();  // as a parameter of tests

}  // namespace dtrain::backend::cuda
