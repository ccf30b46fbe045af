#include "warm_up.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <set>

namespace dtrain::train {
namespace {

class Nobody final : public backend::ContributionSink {
 public:
  explicit Nobody(std::int64_t size) : size_(static_cast<std::size_t>(size)) {}
  std::span<float> buffer(const backend::ShardRange&) override {
    const std::lock_guard lock(mutex_);
    return memory_.emplace_back(size_);
  }
  void ready(const backend::ShardRange&, std::int64_t, std::int64_t, bool) override {}

 private:
  const std::size_t size_;
  std::mutex mutex_;  // guards memory_
  std::list<std::vector<float>> memory_;
};

// Of the first and of the last step of an epoch.
std::set<int> shard_sizes(const EpochPlan& plan) {
  std::set<int> sizes;
  const std::uint64_t last = (plan.steps_from(0) - 1) * static_cast<std::uint64_t>(plan.global_batch);
  for (const std::uint64_t position : {std::uint64_t{0}, last}) {
    for (const backend::ShardRange& shard : rank_step(plan, position, 0, 1).shards) sizes.insert(shard.count);
  }
  sizes.erase(0);
  return sizes;
}

// Black images of class 0; backends want images aligned to 64 bytes.
class Blank {
 public:
  Blank(const nn::Graph& graph, int samples)
      : floats_(static_cast<std::size_t>(samples * graph.input().size()) + kSlack),
        labels_(static_cast<std::size_t>(samples)),
        ids_(labels_.size()) {}

  backend::HostBatch batch(int samples) {
    void* images = floats_.data();
    std::size_t space = floats_.size() * sizeof(float);
    std::align(kSlack * sizeof(float), space - kSlack * sizeof(float), images, space);
    return {samples, static_cast<const float*>(images), labels_.data(), ids_.data()};
  }

 private:
  static constexpr std::size_t kSlack = 16;  // floats in 64 bytes
  std::vector<float> floats_;
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace

void warm_up(const nn::Graph& graph, backend::Executable& executable, const EpochPlan& plan, int evaluation_block) {
  const std::set<int> sizes = shard_sizes(plan);
  std::vector<backend::ShardRange> shards;
  for (const int size : sizes) shards.push_back({static_cast<int>(shards.size()), 0, size});
  const int largest = sizes.empty() ? 0 : *sizes.rbegin();
  Blank blank(graph, std::max(evaluation_block, largest));
  Nobody nobody(backend::ContributionLayout(graph).size());
  executable.enqueue(blank.batch(largest), shards, {}, nobody);
  executable.synchronize();
  if (evaluation_block > 0) executable.evaluate(blank.batch(evaluation_block));
}

}  // namespace dtrain::train
