#include <fmt/format.h>

#include <array>

#include <dtrain/backend/backend.hpp>
#include <dtrain/base/error.hpp>

namespace dtrain::backend {
namespace {

constexpr std::array kNames = {"float32", "bfloat16", "float16"};

}  // namespace

DType parse_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<DType>(i);
  }
  throw UsageError(fmt::format("dtype '{}' is unknown", name), fmt::format("use {}", fmt::join(kNames, ", ")));
}

std::vector<std::string> dtype_names() { return {kNames.begin(), kNames.end()}; }

const char* dtype_name(DType dtype) { return kNames[static_cast<std::size_t>(dtype)]; }

StepMetrics metrics_of(const ContributionLayout& layout, std::span<const float> contribution) {
  const auto* values = contribution.data() + layout.gradients + layout.statistics;
  StepMetrics metrics{values[0], values[1], values[2], values[3]};
  for (std::int64_t part = layout.counts; part < layout.metrics; ++part) {
    metrics.parts[static_cast<std::size_t>(part - layout.counts)] = values[part];
  }
  return metrics;
}

}  // namespace dtrain::backend
