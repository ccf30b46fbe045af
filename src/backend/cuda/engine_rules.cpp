#include "engine_rules.hpp"

#include <algorithm>

namespace dtrain::backend::cuda {

bool may_compute(const EngineFacts& engine, DType dtype) {
  if (!engine.same_bits || engine.narrows_inputs || engine.narrows_sums) return false;
  return dtype != DType::float32 || !engine.tensor_cores;
}

std::vector<std::size_t> engines_to_try(const std::vector<EngineFacts>& engines, DType dtype) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < engines.size(); ++k) {
    const bool known =
        std::ranges::any_of(order, [&](std::size_t earlier) { return engines[earlier].name == engines[k].name; });
    if (!known && may_compute(engines[k], dtype)) order.push_back(k);
  }
  return order;
}

}  // namespace dtrain::backend::cuda
