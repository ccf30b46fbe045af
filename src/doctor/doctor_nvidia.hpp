// What this machine has of NVIDIA's.
#pragma once

#include <string>

#include <dtrain/backend/cuda.hpp>

namespace dtrain::doctor {

struct NvidiaFacts {
  bool has_device = false;      // the kernel's driver made a device file for a GPU: /dev/nvidia0, ...
  std::string driver;           // of the kernel's driver, "580.95.05"; empty: none is loaded
  backend::CudaReport found{};  // what training on GPUs would use
};

NvidiaFacts read_nvidia();

}  // namespace dtrain::doctor
