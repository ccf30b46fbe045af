// An Accelerator that is this CPU: runs the kernels that a GPU would run, at once. Libraries get no stream.
#pragma once

#include <functional>
#include <memory>

#include <dtrain/base/accelerator.hpp>

namespace dtrain::backend::cuda {

// Called on the thread that uses the accelerator, before the work; may throw. Empty: nothing is called.
struct AcceleratorWatch {
  std::function<void()> on_host_copy = {};  // upload() and download()
  std::function<void()> on_add = {};
};

std::unique_ptr<Accelerator> make_replay_accelerator(AcceleratorWatch watch = {});

}  // namespace dtrain::backend::cuda
