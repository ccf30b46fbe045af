#include "driver_judgement.hpp"

#include <fmt/format.h>

#include <dtrain/base/gpu_models.hpp>

namespace dtrain::backend::cuda {
namespace {

constexpr int kMajor = 1000, kMinor = 10;

std::string version_text(int number) { return fmt::format("{}.{}", number / kMajor, number % kMajor / kMinor); }

void refuse(CudaReport& report, std::string problem, std::string hint) {
  report.problem = std::move(problem);
  report.hint = std::move(hint);
}

}  // namespace

void judge_driver(CudaReport& report, const DriverAnswer& answer) {
  if (answer.driver > 0) report.driver = version_text(answer.driver);
  if (!report.gpus.empty()) return;
  if (answer.driver == 0) {
    return refuse(report, "this machine has no NVIDIA driver, so no GPU that dtrain could use",
                  fmt::format("use setting 'device' cpu, or install the driver (version {} or newer)", kLeastDriver));
  }
  if (answer.count == DriverAnswer::Count::failed && answer.driver < answer.needed / kMajor * kMajor) {
    return refuse(
        report,
        fmt::format("the NVIDIA driver knows CUDA {} and dtrain needs CUDA {}", report.driver, answer.needed / kMajor),
        fmt::format("install a driver of version {} or newer, or use setting 'device' cpu", kLeastDriver));
  }
  if (answer.count == DriverAnswer::Count::failed) {
    return refuse(report, fmt::format("no GPU can be used: {}", answer.error),
                  "see what nvidia-smi says, or use setting 'device' cpu");
  }
  if (answer.visible) {
    return refuse(report, fmt::format("the NVIDIA driver shows no GPU: CUDA_VISIBLE_DEVICES is '{}'", *answer.visible),
                  "name GPUs of this machine in it, or unset it; or use setting 'device' cpu");
  }
  refuse(report, "the NVIDIA driver shows no GPU", "see what nvidia-smi says, or use setting 'device' cpu");
}

}  // namespace dtrain::backend::cuda
