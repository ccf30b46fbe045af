#include "step.hpp"

#include <map>
#include <mutex>

namespace dtrain::train {
namespace {

// Gives every shard a buffer of the tree and adds it as a leaf once it is whole.
class TreeSink final : public backend::ContributionSink {
 public:
  explicit TreeSink(comm::TreeSum& tree) : tree_(tree) {}

  std::span<float> buffer(const backend::ShardRange& shard) override {
    std::vector<float> fresh = tree_.take_buffer();
    const std::lock_guard lock(mutex_);
    return buffers_[shard.index] = std::move(fresh);
  }

  void ready(const backend::ShardRange& shard, std::int64_t, std::int64_t, bool last) override {
    if (!last) return;
    std::unique_lock lock(mutex_);
    auto node = buffers_.extract(shard.index);
    lock.unlock();
    tree_.add({{0, shard.index}, std::move(node.mapped())});
  }

 private:
  comm::TreeSum& tree_;
  std::mutex mutex_;  // guards buffers_
  std::map<int, std::vector<float>> buffers_;
};

}  // namespace

StepRunner::StepRunner(const nn::Graph& graph, backend::Executable& executable, comm::Communicator& comm,
                       int logical_shards)
    : executable_(executable),
      comm_(comm),
      layout_(graph),
      logical_shards_(logical_shards),
      tree_(logical_shards, layout_.size()) {}

std::span<const float> StepRunner::contribute(const backend::HostBatch& batch,
                                              std::span<const backend::ShardRange> shards,
                                              const backend::StepKey& key) {
  tree_.give_back(std::move(sum_));
  TreeSink sink(tree_);
  executable_.enqueue(batch, shards, key, sink);
  executable_.synchronize();
  sum_ = comm_.reduce_tree(tree_.take_pieces(), logical_shards_, layout_.size());
  return sum_;
}

}  // namespace dtrain::train
