// Which GPUs of a machine dtrain trains on.
#include <fmt/format.h>

#include <algorithm>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/gpu_models.hpp>

namespace dtrain::backend {

std::string hint_for_old_gpus() {
  return fmt::format("use setting 'device' cpu, or a newer GPU, such as {}", models_that_train());
}

void judge_gpus(CudaReport& report) {
  for (CudaGpu& gpu : report.gpus) {
    // A GPU that does not answer says nothing of itself.
    if (gpu.capability.empty() || capability_from(gpu.capability) >= kLeastCapability) continue;
    gpu.problem = fmt::format("GPU {}, {}, has compute capability {}, and dtrain needs {} or newer", gpu.index,
                              gpu.name, gpu.capability, text_of(kLeastCapability));
  }
  const bool none = !report.gpus.empty() && std::ranges::none_of(report.gpus, &std::string::empty, &CudaGpu::problem);
  if (!none || !report.problem.empty()) return;
  report.problem = report.gpus.front().problem;
  report.hint = hint_for_old_gpus();
}

}  // namespace dtrain::backend
