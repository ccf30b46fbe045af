// A GPU as the executable's Device: launches, copies and recordings on one stream. Everything that decides or computes
// stands outside of this folder, where tests on a CPU reach it; this is what only a GPU can prove.
#pragma once

#include <memory>
#include <string>

#include <dtrain/backend/cuda.hpp>

#include "../device.hpp"
#include "../plans/plan_store.hpp"

namespace dtrain::backend::cuda {

// Throws Error. `cudnn`: the file of the library that was found; `plans`: what was measured on this GPU before.
std::shared_ptr<Device> open_gpu(int index, const std::string& cudnn, const CudaOptions& options,
                                 const PlanStore& plans);

}  // namespace dtrain::backend::cuda
