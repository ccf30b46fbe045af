#include "warm_up.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <dtrain/base/hash.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/nn/initialize.hpp>

namespace dtrain::train {
namespace {

class RecordingSink final : public backend::ContributionSink {
 public:
  explicit RecordingSink(std::int64_t size) : size_(static_cast<std::size_t>(size)) {}
  std::span<float> buffer(const backend::ShardRange& shard) override {
    const MutexLock lock(mutex_);
    return kept_[shard.index] = std::vector<float>(size_);
  }
  void ready(const backend::ShardRange&, std::int64_t, std::int64_t, bool) override {}

  std::string hash() {
    const MutexLock lock(mutex_);
    Sha256 hash;
    for (const auto& [index, contribution] : kept_) hash.update(std::as_bytes(std::span(contribution)));
    return hash.hex();
  }

 private:
  const std::size_t size_;
  Mutex mutex_;
  std::map<int, std::vector<float>> kept_ DTRAIN_GUARDED_BY(mutex_);
};

// Sizes in the first and in the last step of an epoch.
std::set<int> shard_sizes(const EpochPlan& plan) {
  std::set<int> sizes;
  const std::uint64_t last = (plan.steps_from(0) - 1) * static_cast<std::uint64_t>(plan.global_batch);
  for (const std::uint64_t position : {std::uint64_t{0}, last}) {
    for (const backend::ShardRange& shard : rank_step(plan, position, {0, plan.shards}).shards)
      sizes.insert(shard.count);
  }
  sizes.erase(0);
  return sizes;
}

// Synthetic images and labels, the same on every machine; backends want images aligned to 64 bytes.
class SyntheticBatch {
 public:
  SyntheticBatch(const nn::Graph& graph, int samples)
      : memory_(static_cast<std::size_t>(samples * graph.input().size()) + kSlack),
        labels_(static_cast<std::size_t>(samples)),
        ids_(labels_.size()) {
    void* first = memory_.data();
    std::size_t space = memory_.size() * sizeof(float);
    images_ = static_cast<float*>(std::align(kAlignment, space - kAlignment, first, space));
    const std::size_t size = memory_.size() - kSlack;
    for (std::size_t i = 0; i < size; ++i) images_[i] = static_cast<float>(i * 7919 % 255) / 128.0f - 1.0f;
    for (std::size_t i = 0; i < labels_.size(); ++i) labels_[i] = static_cast<std::int32_t>(i) % graph.classes();
    std::iota(ids_.begin(), ids_.end(), 0u);
  }
  SyntheticBatch(const SyntheticBatch&) = delete;

  backend::HostBatch batch(int samples) const { return {samples, images_, labels_.data(), ids_.data()}; }

 private:
  static constexpr std::size_t kAlignment = 64, kSlack = kAlignment / sizeof(float);
  std::vector<float> memory_;
  float* images_ = nullptr;
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> ids_;
};

backend::ModelState synthetic_state(const nn::Graph& graph, const backend::ModelState& like) {
  backend::ModelState state = like;
  nn::initialize_parameters(graph, 1, state.parameters);
  nn::initialize_statistics(graph, state.statistics);
  return state;
}

}  // namespace

std::string warm_up(const nn::Graph& graph, backend::Executable& executable, const EpochPlan& plan,
                    int evaluation_block, std::int64_t contribution) {
  const std::set<int> sizes = shard_sizes(plan);
  std::vector<backend::ShardRange> shards;
  for (const int size : sizes) shards.push_back({static_cast<int>(shards.size()), 0, size});
  const int largest = sizes.empty() ? 0 : *sizes.rbegin();
  const SyntheticBatch samples(graph, std::max(evaluation_block, largest));
  RecordingSink sink(contribution);
  executable.write_state(synthetic_state(graph, executable.state()));
  executable.enqueue(samples.batch(largest), shards, {}, sink);
  executable.synchronize();
  if (evaluation_block > 0) executable.evaluate(samples.batch(evaluation_block));
  return sink.hash();
}

}  // namespace dtrain::train
