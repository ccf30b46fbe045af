#include <dtrain/train/plan.hpp>

#include <algorithm>
#include <ranges>

namespace dtrain::train {

std::uint64_t EpochPlan::steps_from(std::uint64_t position) const {
  std::uint64_t steps = 0, end = samples;
  for (auto size = last.rbegin(); size != last.rend() && position < end; ++size, ++steps) {
    end -= static_cast<std::uint64_t>(*size);
  }
  const auto batch = static_cast<std::uint64_t>(global_batch);
  return position < end ? steps + (end - position + batch - 1) / batch : steps;
}

int EpochPlan::step_size(std::uint64_t position) const {
  std::uint64_t end = samples;  // of the step that is looked at
  for (auto size = last.rbegin(); size != last.rend(); ++size) {
    const std::uint64_t begin = end - static_cast<std::uint64_t>(*size);
    if (position >= begin) return static_cast<int>(end - position);
    end = begin;
  }
  return static_cast<int>(std::min(static_cast<std::uint64_t>(global_batch), end - position));
}

std::vector<int> last_steps(const std::vector<data::PictureGroup>& groups, int global_batch) {
  std::vector<int> last;
  for (const data::PictureGroup& group : groups) {
    const auto rest = static_cast<int>(group.samples % static_cast<std::uint32_t>(global_batch));
    if (rest > 0) last.push_back(rest);
  }
  return last;
}

RankStep rank_step(const EpochPlan& plan, std::uint64_t position, comm::ShardSpan span) {
  const std::int64_t g = plan.step_size(position), parts = plan.workers > 0 ? plan.workers : plan.shards;
  // The k-th part stands in the first shard of rank k; of ranks without shards, in the last shard.
  const auto stands_before = [&](int shard, int part) {
    const int first = comm::shards_of_rank(part, static_cast<int>(parts), plan.shards).first;
    return std::min(first, plan.shards - 1) < shard;
  };
  const auto parts_before = [&](int shard) -> std::int64_t {
    const auto all = std::views::iota(0, static_cast<int>(parts));
    return std::ranges::partition_point(all, [&](int part) { return stands_before(shard, part); }) - all.begin();
  };
  const auto boundary = [&](int shard) { return static_cast<int>(parts_before(shard) * g / parts); };
  const int first = boundary(span.first);
  RankStep result;
  result.slice = {position + static_cast<std::uint64_t>(first), boundary(span.last) - first};
  for (int shard = span.first; shard < span.last; ++shard) {
    result.shards.push_back({shard, boundary(shard) - first, boundary(shard + 1) - boundary(shard)});
  }
  return result;
}

std::vector<data::Slice> evaluation_blocks(const EpochPlan& plan, int rank, int ranks) {
  std::vector<data::Slice> slices;
  int block = 0;
  for (std::uint64_t position = 0; position < plan.samples; ++block) {
    const int size = plan.step_size(position);
    if (block % ranks == rank) slices.push_back({position, size});
    position += static_cast<std::uint64_t>(size);
  }
  return slices;
}

}  // namespace dtrain::train
