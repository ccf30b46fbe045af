#include "engine_rules.hpp"

#include <algorithm>

namespace dtrain::backend::cuda {

EngineRules rules_for(const Convolution& work, EngineRules rules) {
  rules.deterministic |= !work.any_order;
  return rules;
}

bool may_compute(const EngineFacts& engine, DType dtype, const EngineRules& rules) {
  if (engine.narrows_inputs || engine.narrows_sums) return false;
  if (rules.deterministic && !engine.same_bits) return false;
  return dtype != DType::float32 || !engine.tensor_cores || rules.tf32;
}

bool needs_proof(const EngineFacts& engine, const Convolution& work, const EngineRules& rules) {
  return engine.made_at_run_time && rules_for(work, rules).deterministic;
}

std::vector<std::size_t> engines_to_try(const std::vector<EngineFacts>& engines, DType dtype, const EngineRules& rules,
                                        const std::string& preferred) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < engines.size(); ++k) {
    const bool known =
        std::ranges::any_of(order, [&](std::size_t earlier) { return engines[earlier].name == engines[k].name; });
    if (!known && may_compute(engines[k], dtype, rules)) order.push_back(k);
  }
  std::stable_partition(order.begin(), order.end(), [&](std::size_t k) { return engines[k].name == preferred; });
  return order;
}

bool may_fuse(const Convolution& work) {
  constexpr std::int32_t kVector = 8;  // channels in 16 bytes
  const ConvolutionShape& s = work.shape;
  return work.dtype == DType::float16 && s.groups == 1 && s.in % kVector == 0 && s.out % kVector == 0;
}

std::size_t clearly_fastest(std::span<const double> seconds) {
  constexpr double kClearly = 0.98;  // two measurements of the same differ by about a hundredth
  std::size_t best = 0;
  for (std::size_t k = 1; k < seconds.size(); ++k) {
    if (seconds[k] < kClearly * seconds[best]) best = k;
  }
  return best;
}

}  // namespace dtrain::backend::cuda
