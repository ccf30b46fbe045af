// What a backend on a GPU says of itself, and under which name its measured plans are kept. Pure.
#pragma once

#include <string>

#include <dtrain/backend/cuda.hpp>

#include "plans/plan_store.hpp"

namespace dtrain::backend::cuda {

// "NVIDIA H100 80GB HBM3 (capability 9.0, driver for CUDA 13.0), cuDNN 9.19.0, TF32": all that decides on the bits.
std::string describe(const CudaGpu& gpu, const CudaReport& report, const CudaOptions& options, const PlanStore& plans);

// Plans that were measured where bits may differ are kept apart: a run that wants the same bits neither uses them nor
// is described by them.
std::string maker_of_plans(const CudaGpu& gpu, const CudaReport& report, const CudaOptions& options);

}  // namespace dtrain::backend::cuda
