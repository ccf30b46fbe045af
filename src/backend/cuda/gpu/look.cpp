// What this machine has of NVIDIA's, and the backend on it.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/cache_folder.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/gpu_models.hpp>

#include "../cuda_backend.hpp"
#include "../description.hpp"
#include "../libraries/shared_object.hpp"
#include "gpu_device.hpp"

namespace dtrain::backend {
namespace cuda {
namespace {

std::string version_text(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

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
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0) report.driver = version_text(driver);
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (error == cudaSuccess) {
    for (int index = 0; index < count; ++index) report.gpus.push_back(gpu_at(index));
    return;
  }
  if (driver == 0) {
    report.problem = "this machine has no NVIDIA driver, so no GPU that dtrain could use";
    report.hint = fmt::format("use setting 'device' cpu, or install the driver (version {} or newer)", kLeastDriver);
  } else if (driver < CUDART_VERSION / 1000 * 1000) {
    report.problem =
        fmt::format("the NVIDIA driver knows CUDA {} and dtrain needs CUDA {}", report.driver, CUDART_VERSION / 1000);
    report.hint = fmt::format("install a driver of version {} or newer, or use setting 'device' cpu", kLeastDriver);
  } else {
    report.problem = fmt::format("no GPU can be used: {}", cudaGetErrorString(error));
    report.hint = "see what nvidia-smi says, or use setting 'device' cpu";
  }
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
  if (report.problem.empty() && report.gpus.empty()) {
    report.problem = "the NVIDIA driver shows no GPU";
    report.hint = "see CUDA_VISIBLE_DEVICES and nvidia-smi, or use setting 'device' cpu";
  } else if (report.problem.empty() && !found.problem.empty()) {
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
