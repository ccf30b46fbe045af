#include "engine_rules.hpp"

#include <algorithm>

#include "product.hpp"

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

OwnEngines own_engines(OwnProducts wanted, int plans_to_time) {
  switch (wanted) {
    case OwnProducts::never:
      return OwnEngines::never;
    case OwnProducts::timed:
      return plans_to_time > 0 ? OwnEngines::always : OwnEngines::chosen;
    case OwnProducts::first:
      break;
  }
  return OwnEngines::always;
}

std::vector<EngineFacts> own_engines_for(const Convolution& work, const EngineRules& rules,
                                         const std::string& preferred) {
  const std::optional<ProductShape> shape = product_of(work);
  if (!shape || rules.own == OwnEngines::never) return {};
  std::vector<EngineFacts> engines;
  for (const ProductTile& tile : product_tiles(*shape)) {
    const std::string name = engine_name(tile);
    if (product_workspace(work, tile) > rules.most_workspace) continue;
    if (rules.own == OwnEngines::always || name == preferred) {
      engines.push_back({.name = name, .tensor_cores = true, .own = true});
    }
  }
  return engines;
}

bool needs_proof(const EngineFacts& engine, const Convolution& work, const EngineRules& rules) {
  return engine.own || (engine.made_at_run_time && rules_for(work, rules).deterministic);
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

bool asks_cudnn(const Convolution& work) { return (!work.moments && !work.normed.fused) || may_fuse(work); }

std::size_t clearly_fastest(std::span<const double> seconds) {
  constexpr double kClearly = 0.98;  // two measurements of the same differ by about a hundredth
  std::size_t best = 0;
  for (std::size_t k = 1; k < seconds.size(); ++k) {
    if (seconds[k] < kClearly * seconds[best]) best = k;
  }
  return best;
}

}  // namespace dtrain::backend::cuda
