// What this machine has of NVIDIA's, and the backend on it.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/cache_folder.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>

#include "../cuda_backend.hpp"
#include "../description.hpp"
#include "../driver_judgement.hpp"
#include "../libraries/shared_object.hpp"
#include "gpu_device.hpp"

namespace dtrain::backend {
namespace cuda {
namespace {

CudaGpu gpu_at(int index) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
    cudaGetLastError();  // or the first launch on another GPU would take it for its own
    return {.index = index, .name = "?", .capability = {}};
  }
  return {.index = index,
          .name = properties.name,
          .capability = fmt::format("{}.{}", properties.major, properties.minor),
          .memory = properties.totalGlobalMem,
          .problem = {}};
}

void look_for_gpus(CudaReport& report) {
  int count = 0;
  DriverAnswer answer{.needed = CUDART_VERSION, .visible = environment("CUDA_VISIBLE_DEVICES")};
  if (cudaDriverGetVersion(&answer.driver) != cudaSuccess) answer.driver = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (error == cudaSuccess) {
    answer.count = DriverAnswer::Count::done;
    for (int index = 0; index < count; ++index) report.gpus.push_back(gpu_at(index));
  } else {
    answer.count = error == cudaErrorNoDevice ? DriverAnswer::Count::no_gpu : DriverAnswer::Count::failed;
    answer.error = cudaGetErrorString(error);
  }
  judge_driver(report, answer);
}

}  // namespace
}  // namespace cuda

CudaReport look_for_cuda() {
  CudaReport report;
  report.built = true;
  const cuda::SearchPlaces places = cuda::places_of_environment();
  const cuda::LibraryWanted cudnn = cuda::cudnn_wanted(), nccl = cuda::nccl_wanted();
  report.libraries.push_back(cuda::find_library(cudnn, cuda::search_folders(places, cudnn), cuda::probe_cudnn));
  report.libraries.push_back(cuda::find_library(nccl, cuda::search_folders(places, nccl), cuda::probe_nccl));
  cuda::look_for_gpus(report);
  judge_gpus(report);
  const CudaLibrary& found = report.libraries.front();
  if (report.problem.empty() && !found.problem.empty()) {
    report.problem = found.problem;
    report.hint = found.hint;
  }
  return report;
}

std::unique_ptr<Backend> make_cuda_backend(int index, const CudaOptions& options) {
  const CudaReport report = look_for_cuda();
  if (!report.problem.empty()) throw UsageError(report.problem, report.hint);
  const int count = static_cast<int>(report.gpus.size());
  if (index < 0 || index >= count) {
    throw UsageError(fmt::format("GPU {} is not there: this machine has {}", index,
                                 count == 1 ? "GPU 0 only" : fmt::format("GPUs 0 to {}", count - 1)),
                     "nvidia-smi lists them");
  }
  const CudaLibrary& cudnn = report.libraries.front();
  const CudaGpu& gpu = report.gpus[static_cast<std::size_t>(index)];
  if (!gpu.problem.empty()) throw UsageError(gpu.problem, hint_for_old_gpus());
  // Capabilities are "8.0", "9.0", "10.0"; bfloat16 began with 8.
  const bool has_bfloat16 = gpu.capability.size() > 3 || gpu.capability >= "8";
  const Path folder = options.plans.empty() ? user_cache_folder() : options.plans;
  const cuda::PlanStore plans(folder, cuda::maker_of_plans(gpu, report, options));
  return cuda::make_backend_on({cuda::describe(gpu, report, options, plans), has_bfloat16, options.deterministic},
                               [=, file = cudnn.file] { return cuda::open_gpu(index, file, options, plans); });
}

}  // namespace dtrain::backend
