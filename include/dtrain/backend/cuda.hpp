// GPUs of NVIDIA. The driver and cuDNN are looked for when one of these functions is called, not when dtrain starts:
// the program runs on machines that have neither. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend {

// A library that GPUs need, as it was found.
struct CudaLibrary {
  std::string name;     // "cuDNN", "NCCL"
  std::string file;     // absolute; empty: none that will do
  std::string version;  // "9.19.0"
  std::string problem;  // why none will do, in one sentence; else empty
  std::string hint;     // what to do about it
};

struct CudaGpu {
  int index = 0;
  std::string name;        // "NVIDIA H200"
  std::string capability;  // "9.0"
  std::uint64_t memory = 0;
};

struct CudaReport {
  bool built = false;  // this dtrain can use GPUs at all
  std::string driver;  // the newest CUDA that the driver knows, "13.0"; empty: no driver
  std::vector<CudaLibrary> libraries;
  std::vector<CudaGpu> gpus;
  std::string problem;  // why no GPU can be trained on, in one sentence; empty where one can
  std::string hint;
};

CudaReport look_for_cuda();

// The backend on GPU `index`. Throws UsageError with the report's problem, or for a GPU that is not there.
std::unique_ptr<Backend> make_cuda_backend(int index);

}  // namespace dtrain::backend
