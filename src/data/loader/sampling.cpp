#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include <dtrain/base/random.hpp>
#include <dtrain/data/loader.hpp>

namespace dtrain::data {

namespace {

constexpr std::size_t kBlocksMixed = 16;

void shuffle(std::span<std::uint32_t> order, RandomStream& random) {
  for (auto left = static_cast<std::uint32_t>(order.size()); left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
}

std::vector<std::uint32_t> counted(std::uint32_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

}  // namespace

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint32_t epoch, std::uint32_t count,
                                       std::uint32_t block) {
  RandomStream random(seed, RandomUse::order, epoch, 0);
  if (block == 0 || block >= count) {
    std::vector<std::uint32_t> order = counted(count);
    shuffle(order, random);
    return order;
  }
  std::vector<std::uint32_t> blocks = counted((count + block - 1) / block), order;
  shuffle(blocks, random);
  order.reserve(count);
  for (const std::uint32_t number : blocks) {
    const std::uint32_t end = std::min<std::uint64_t>(count, (number + std::uint64_t{1}) * block);
    for (std::uint32_t position = number * block; position < end; ++position) order.push_back(position);
  }
  const std::size_t mixed = kBlocksMixed * block;
  for (std::size_t first = 0; first < order.size(); first += mixed) {
    shuffle(std::span(order).subspan(first, std::min(mixed, order.size() - first)), random);
  }
  return order;
}

}  // namespace dtrain::data
