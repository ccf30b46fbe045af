// An Accelerator that is this CPU: runs the bodies that a GPU would run, at once. Libraries get no stream.
#pragma once

#include <memory>

#include <dtrain/base/accelerator.hpp>

namespace dtrain::backend::cuda {

std::unique_ptr<Accelerator> make_replay_accelerator();

}  // namespace dtrain::backend::cuda
