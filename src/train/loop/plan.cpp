#include <dtrain/train/plan.hpp>

#include <algorithm>

namespace dtrain::train {

std::uint64_t EpochPlan::steps_from(std::uint64_t position) const {
  const auto batch = static_cast<std::uint64_t>(global_batch);
  return (samples - position + batch - 1) / batch;
}

int EpochPlan::step_size(std::uint64_t position) const {
  return static_cast<int>(std::min(static_cast<std::uint64_t>(global_batch), samples - position));
}

RankStep rank_step(const EpochPlan& plan, std::uint64_t position, comm::ShardSpan span) {
  const std::int64_t g = plan.step_size(position), parts = plan.workers > 0 ? plan.workers : plan.shards;
  // The k-th of p parts stands in shard floor(k*V/p), so ceil(i*p/V) of them stand before shard i.
  const auto parts_before = [&](int shard) { return (shard * parts + plan.shards - 1) / plan.shards; };
  const auto boundary = [&](int shard) { return static_cast<int>(parts_before(shard) * g / parts); };
  const int first = boundary(span.first);
  RankStep result;
  result.slice = {position + static_cast<std::uint64_t>(first), boundary(span.last) - first};
  for (int shard = span.first; shard < span.last; ++shard) {
    result.shards.push_back({shard, boundary(shard) - first, boundary(shard + 1) - boundary(shard)});
  }
  return result;
}

std::vector<data::Slice> evaluation_blocks(std::uint64_t samples, int block, int rank, int ranks) {
  std::vector<data::Slice> slices;
  const auto size = static_cast<std::uint64_t>(block);
  for (std::uint64_t i = static_cast<std::uint64_t>(rank); i * size < samples; i += static_cast<std::uint64_t>(ranks)) {
    slices.push_back({i * size, static_cast<int>(std::min(size, samples - i * size))});
  }
  return slices;
}

}  // namespace dtrain::train
