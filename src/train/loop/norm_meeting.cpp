#include "norm_meeting.hpp"

#include <algorithm>
#include <cstring>

#include <dtrain/base/error.hpp>

namespace dtrain::train {

void NormMeeting::begin_step(std::span<const backend::ShardRange> shards) {
  waited_ = {};
  const MutexLock lock(mutex_);
  std::erase_if(kept_, [&](const auto& kept) {
    return std::ranges::none_of(shards, [&](const auto& shard) { return shard.index == kept.first; });
  });
  for (const backend::ShardRange& shard : shards) kept_[shard.index].resize(size_);
}

std::span<float> NormMeeting::buffer(const backend::ShardRange& shard) {
  const MutexLock lock(mutex_);
  return kept_.at(shard.index);
}

void NormMeeting::hand_over(std::span<const backend::ShardRange> shards, backend::ContributionSink& sink) {
  for (const backend::ShardRange& shard : shards) {
    std::ranges::copy(buffer(shard), sink.buffer(shard).begin());
    sink.ready(shard, 0, static_cast<std::int64_t>(size_), true);
  }
}

std::vector<double> NormMeeting::gather(std::span<const double> mine) {
  if (comm_.size() == 1) return {mine.begin(), mine.end()};
  const auto begin = std::chrono::steady_clock::now();
  membership_.progress(elastic::Phase::reducing);
  const std::vector<std::string> parts = comm_.all_gather(std::as_bytes(mine));
  membership_.progress(elastic::Phase::computing);
  waited_ += std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  std::vector<double> rows;
  for (const std::string& part : parts) {
    DTRAIN_CHECK(part.size() % sizeof(double) == 0, "rows are whole numbers of doubles");
    const std::size_t old = rows.size();
    rows.resize(old + part.size() / sizeof(double));
    std::memcpy(rows.data() + old, part.data(), part.size());
  }
  return rows;
}

}  // namespace dtrain::train
