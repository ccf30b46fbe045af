// A device that is this CPU: runs the very bodies that a GPU would run, thread by thread, and convolutions by their
// definition. What it shows is all arithmetic and all order of the cuda backend; what it cannot show is what a GPU and
// its libraries do with it.
#pragma once

#include <functional>
#include <memory>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend::cuda {

// Memory is poisoned with NaN, so that what is read before it is written shows.
// `joins`: does at once what a device may do at once (joining.hpp), by its definition.
// `at_milestone` is told what is reached, while the work behind it is still to be done.
std::unique_ptr<Backend> make_replay_backend(std::uint64_t free_bytes = std::uint64_t{8} << 30, bool joins = false,
                                             std::function<void(int)> at_milestone = {});
std::unique_ptr<Backend> make_large_replay_backend();  // as a parameter of tests

}  // namespace dtrain::backend::cuda
