#include "description.hpp"

#include <fmt/format.h>

namespace dtrain::backend::cuda {
namespace {

constexpr const char* kNotDeterministic = "not deterministic";

const std::string& cudnn_version(const CudaReport& report) { return report.libraries.front().version; }

}  // namespace

std::string describe(const CudaGpu& gpu, const CudaReport& report, const CudaOptions& options, const PlanStore& plans) {
  std::string text = fmt::format("{} (capability {}, driver for CUDA {}), cuDNN {}", gpu.name, gpu.capability,
                                 report.driver, cudnn_version(report));
  if (options.tf32) text += ", TF32";
  if (!options.deterministic) text += fmt::format(", {}", kNotDeterministic);
  if (!options.fuses) text += ", passes apart";
  if (options.own_products == OwnProducts::first) text += ", own products first";
  if (options.own_products == OwnProducts::never) text += ", no own products";
  const std::string measured = plans.description();
  return measured.empty() ? text : fmt::format("{}, {}", text, measured);
}

std::string maker_of_plans(const CudaGpu& gpu, const CudaReport& report, const CudaOptions& options) {
  std::string maker = fmt::format("{} cuDNN {}", gpu.name, cudnn_version(report));
  if (!options.deterministic) maker += fmt::format(" {}", kNotDeterministic);
  return maker;
}

}  // namespace dtrain::backend::cuda
