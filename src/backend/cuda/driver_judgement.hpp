// What the driver's answer says about the GPUs of a machine. Pure; gpu/look.cpp asks the driver.
#pragma once

#include <optional>
#include <string>

#include <dtrain/backend/cuda.hpp>

namespace dtrain::backend::cuda {

struct DriverAnswer {
  // It names no GPU where there is none and where CUDA_VISIBLE_DEVICES hides all of them.
  enum class Count { done, no_gpu, failed };
  int driver = 0;  // the newest CUDA that it knows, 13000 for 13.0; 0: there is no driver
  int needed = 0;  // the CUDA that dtrain uses, likewise
  Count count = Count::failed;
  std::string error{};                   // in CUDA's words, where the count failed
  std::optional<std::string> visible{};  // CUDA_VISIBLE_DEVICES
};

// Fills the report's driver, and its problem unless the report has the GPUs that were counted.
void judge_driver(CudaReport& report, const DriverAnswer& answer);

}  // namespace dtrain::backend::cuda
