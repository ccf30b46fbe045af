#include "step.hpp"

#include <utility>

namespace dtrain::train {
namespace {

// A shard's contribution is a leaf of the reduction.
class LeafSink final : public backend::ContributionSink {
 public:
  explicit LeafSink(comm::Reduction& reduction) : reduction_(reduction) {}
  std::span<float> buffer(const backend::ShardRange& shard) override { return reduction_.leaf(shard.index); }
  void ready(const backend::ShardRange& shard, std::int64_t first, std::int64_t size, bool) override {
    reduction_.ready(shard.index, first, size);
  }

 private:
  comm::Reduction& reduction_;
};

}  // namespace

StepRunner::StepRunner(const nn::Graph& graph, backend::Executable& executable, comm::Communicator& comm,
                       int logical_shards)
    : executable_(executable), comm_(comm), layout_(graph), logical_shards_(logical_shards) {}

std::span<const float> StepRunner::contribute(const backend::HostBatch& batch,
                                              std::span<const backend::ShardRange> shards,
                                              const backend::StepKey& key) {
  comm_.recycle(std::exchange(sum_, {}));
  const auto reduction = comm_.begin_reduction({.shards = logical_shards_, .size = layout_.size()}, {});
  LeafSink sink(*reduction);
  executable_.enqueue(batch, shards, key, sink);
  executable_.synchronize();
  sum_ = reduction->finish().sum;
  return sum_;
}

}  // namespace dtrain::train
