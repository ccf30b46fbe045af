#include <numeric>
#include <utility>

#include <dtrain/base/random.hpp>
#include <dtrain/data/loader.hpp>

namespace dtrain::data {

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint32_t epoch, std::uint32_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  RandomStream random(seed, RandomUse::order, epoch, 0);
  for (std::uint32_t left = count; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

}  // namespace dtrain::data
