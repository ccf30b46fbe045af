// A GPU as an Accelerator, on a stream of its own beside those of the backends on it.
#pragma once

#include <memory>

#include <dtrain/base/accelerator.hpp>

namespace dtrain::backend {

// Throws UsageError where this dtrain or this machine has no such GPU.
std::unique_ptr<Accelerator> open_accelerator(int index);

}  // namespace dtrain::backend
