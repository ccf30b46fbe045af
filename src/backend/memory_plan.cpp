#include "memory_plan.hpp"

#include <algorithm>
#include <numeric>

namespace dtrain::backend {
namespace {

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

Places plan_places(const std::vector<Lifetime>& lifetimes, std::size_t alignment) {
  const auto aligned = [&](std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](auto a, auto b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  Places places{std::vector<std::size_t>(lifetimes.size()), 0};
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t item : order) {
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      if (!overlap(lifetimes[item], lifetimes[other])) continue;
      if (offset + lifetimes[item].bytes <= places.offsets[other]) break;
      offset = std::max(offset, places.offsets[other] + aligned(lifetimes[other].bytes));
    }
    places.offsets[item] = offset;
    places.bytes = std::max(places.bytes, offset + aligned(lifetimes[item].bytes));
    placed.insert(std::ranges::upper_bound(placed, offset, {}, [&](auto p) { return places.offsets[p]; }), item);
  }
  return places;
}

}  // namespace dtrain::backend
