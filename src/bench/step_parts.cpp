#include "step_parts.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace dtrain::bench {
namespace {

constexpr const char *kConvolutions = "convolutions", *kDense = "dense", *kNorms = "norms",
                     *kElementwise = "elementwise", *kPooling = "pooling", *kReorders = "reorders",
                     *kOptimizer = "optimizer", *kLoader = "loader", *kWaiting = "waiting";
constexpr const char* kParts[] = {kConvolutions, kDense,     kNorms,  kElementwise, kPooling,
                                  kReorders,     kOptimizer, kLoader, kWaiting};

// Kinds begin with one of these; the others are elementwise.
constexpr std::pair<std::string_view, const char*> kKinds[] = {
    {"convolution", kConvolutions}, {"dense", kDense},      {"batch_norm", kNorms}, {"pooling", kPooling},
    {"packing", kReorders},         {"flatten", kReorders}, {"layer_norm", kNorms}, {"attention", kDense},
};

const char* part_of(std::string_view kind) {
  const auto found = std::ranges::find_if(kKinds, [&](const auto& of) { return kind.starts_with(of.first); });
  return found == std::end(kKinds) ? kElementwise : found->second;
}

std::optional<double> limit_of(double bare_seconds, std::uint64_t bytes, double bytes_per_second) {
  if (bare_seconds > 0) return bare_seconds;
  if (bytes_per_second <= 0) return std::nullopt;
  return static_cast<double>(bytes) / bytes_per_second;
}

}  // namespace

int rounds_of(int shards, int lanes) { return (shards + lanes - 1) / lanes; }

std::uint64_t optimizer_bytes(const backend::ModelState& state) {
  return sizeof(float) * (3 * state.parameters.size() + 2 * state.optimizer.size());
}

std::vector<StepPart> step_parts(const backend::Profile& profile, const MeasuredStep& step) {
  std::vector<StepPart> parts;
  for (const char* name : kParts) parts.emplace_back().name = name;
  const auto part = [&](std::string_view name) -> StepPart& {
    return *std::ranges::find(parts, name, &StepPart::name);
  };
  const auto add = [&](const backend::OperationTime& operation, int rounds, int times) {
    StepPart& to = part(part_of(operation.kind));
    to.seconds += operation.seconds * rounds;
    to.bytes += operation.bytes * static_cast<std::uint64_t>(times);
    const auto limit = limit_of(operation.bare_seconds, operation.bytes, profile.bytes_per_second);
    if (limit) to.limit_seconds = to.limit_seconds.value_or(0) + *limit * rounds;
  };
  for (const auto& operation : profile.of_shard) add(operation, rounds_of(step.shards, step.lanes), step.shards);
  for (const auto& operation : profile.of_step) add(operation, 1, 1);
  part(kOptimizer).seconds = step.applying;
  part(kOptimizer).bytes = step.optimizer_bytes;
  part(kOptimizer).limit_seconds = limit_of(0, step.optimizer_bytes, profile.bytes_per_second * step.lanes);
  part(kLoader).seconds = step.loading;
  double known = 0;
  for (const StepPart& one : parts) known += one.seconds;
  part(kWaiting).seconds = std::max(0.0, step.seconds - known);
  return parts;
}

}  // namespace dtrain::bench
