#include <dtrain/train/plan.hpp>

#include <algorithm>

#include <dtrain/comm/tree.hpp>

namespace dtrain::train {

std::uint64_t EpochPlan::steps() const {
  const auto batch = static_cast<std::uint64_t>(global_batch);
  return (samples + batch - 1) / batch;
}

int EpochPlan::step_size(std::uint64_t step) const {
  const auto batch = static_cast<std::uint64_t>(global_batch);
  return static_cast<int>(std::min(batch, samples - step * batch));
}

RankStep rank_step(const EpochPlan& plan, std::uint64_t step, int rank, int ranks) {
  const std::int64_t g = plan.step_size(step);
  const auto boundary = [&](int shard) { return static_cast<int>(shard * g / plan.shards); };
  const comm::ShardSpan span = comm::shards_of_rank(rank, ranks, plan.shards);
  const int first = boundary(span.first);
  RankStep result;
  result.slice = {step * static_cast<std::uint64_t>(plan.global_batch) + static_cast<std::uint64_t>(first),
                  boundary(span.last) - first};
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
