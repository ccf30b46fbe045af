// GPUs of NVIDIA. The driver and cuDNN are looked for when one of these functions is called, not when dtrain starts:
// the program runs on machines that have neither. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/base/files.hpp>

namespace dtrain::backend {

// A library that GPUs need, as it was found.
struct CudaLibrary {
  std::string name;       // "cuDNN", "NCCL"
  std::string file{};     // absolute; empty: none that will do
  std::string version{};  // "9.19.0"
  std::string problem{};  // why none will do, in one sentence; else empty
  std::string hint{};     // what to do about it
};

struct CudaGpu {
  int index = 0;
  std::string name{};        // "NVIDIA H200"
  std::string capability{};  // "9.0"
  std::uint64_t memory = 0;
  std::string problem{};  // why dtrain cannot train on it, in one sentence; empty: it can
};

struct CudaReport {
  bool built = false;    // this dtrain can use GPUs at all
  std::string driver{};  // the newest CUDA that the driver knows, "13.0"; empty: no driver
  std::vector<CudaLibrary> libraries{};
  std::vector<CudaGpu> gpus{};
  std::string problem{};  // why no GPU can be trained on, in one sentence; empty where one can
  std::string hint{};
};

CudaReport look_for_cuda();

// Fills the problem of each GPU that is too old (base/gpu_models.hpp), and the report's where none is left.
void judge_gpus(CudaReport& report);
std::string hint_for_old_gpus();

// dtrain's own kernels for convolutions that are products of matrices (tensor cores of Hopper), beside cuDNN's. What
// computes must have shown on this kind of GPU, for the shape, that it gives the same bits and cuDNN's result.
enum class OwnProducts {
  never,
  timed,  // where plans are timed, and where they were and these were the fastest
  first   // also where nothing was timed
};

// How convolutions are computed. All of it shows in Backend::description().
struct CudaOptions {
  bool deterministic = true;  // the same bits whenever the same is computed; false: sums in whatever order is fast
  bool tf32 = false;          // what they multiply in float32 is rounded to ten bits, as tensor cores want it
  // How many of cuDNN's plans are timed for a convolution that no earlier run measured; the fastest is kept and used
  // from then on. 0: nothing is timed, what is not kept is computed by the plan that cuDNN itself puts first.
  int plans_to_time = 0;
  bool fuses = true;  // what cuDNN can do at once is one pass over memory (convolution_fusion.hpp), not one for each
  OwnProducts own_products = OwnProducts::timed;
  Path plans;  // the folder where they are kept; empty: user_cache_folder()
};

// The backend on GPU `index`. Throws UsageError with the report's problem, or for a GPU that is not there.
std::unique_ptr<Backend> make_cuda_backend(int index, const CudaOptions& options = {});

}  // namespace dtrain::backend
