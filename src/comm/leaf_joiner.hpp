// What every transport does alike: the leaves of some neighbouring shards become complete subtrees, bucket by bucket,
// on the threads that computed them.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <dtrain/base/deferred_floats.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/comm/tree.hpp>

#include "buckets.hpp"
#include "float_pool.hpp"

namespace dtrain::comm {

// One bucket of a node whose sibling does not come from these shards.
struct Piece {
  int bucket = 0;
  TreeNode node;
  float* values = nullptr;  // the bucket's floats; they stay where they are as long as the joiner lives
};

// Threads: leaf() and ready() may be called from any thread. No thread waits for another: counters of missing floats
// and of complete children decide which thread adds. Their acquire-release order makes the floats of both children
// visible to it. mutex_ guards only the life of memory. Lifetime: the memory of a piece stays until the joiner is
// destroyed; a leaf that was added to another returns to the pool at once.
//
// Four neighbouring leaves are added in one pass, (first + second) + (third + fourth), which moves half as much memory
// as three additions; where the span ends between them, and above them, two nodes are, left + right. The thread that
// completed the last of them adds, into the memory of the first. So a rank that computes one shard after the other
// holds one leaf more than with pairs alone.
//
// A node whose leaves are all deferred in a bucket is deferred itself: its children are not added, and its floats are
// computed in one pass when these shards complete no node above it. A deferred node that meets another is computed.
class LeafJoiner {
 public:
  // Leaves are of the shards in `span` of shape.shards. on_piece is called once for each piece and bucket, from
  // whichever thread completes it. `pool` must outlive this.
  LeafJoiner(const ReductionShape& shape, ShardSpan span, FloatPool& pool, std::function<void(const Piece&)> on_piece);
  ~LeafJoiner();

  const std::vector<Bucket>& buckets() const { return buckets_; }
  std::span<float> leaf(int shard);
  void ready(int shard, std::int64_t first, std::int64_t size);
  void defer(int shard, FloatRange range, const std::shared_ptr<const DeferredFloats>& floats);
  // Computes deferred nodes that wait for nothing, until no other is left.
  void compute_deferred();

  // The memory of the first shard's leaf, where the leftmost piece is; allocated if no caller of leaf() did.
  FloatBuffer& first_memory();

 private:
  struct Leaf {
    FloatBuffer memory;
    std::unique_ptr<std::atomic<std::int64_t>[]> missing;  // floats, by bucket
    // [bucket]; null: the floats lie in the memory. Ordered as they are, by the counters.
    std::vector<std::shared_ptr<const DeferredFloats>> deferred;
    int uses = 0;  // of the memory: by buckets that are neither deferred nor added to a left sibling
  };

  using Due = std::pair<TreeNode, int>;  // a deferred node that waits for nothing, and the bucket

  Leaf& leaf_of(int shard) { return leaves_[static_cast<std::size_t>(shard - span_.first)]; }
  static int first_shard_of(TreeNode node) { return node.index << node.level; }
  float* values_of(TreeNode node, int bucket);
  bool is_covered(TreeNode node) const;
  void for_each_bucket(FloatRange range, const std::function<void(int bucket, FloatRange part)>& act) const;
  FloatPool::Use use_of(int shard) const;
  void complete(int shard, int bucket, std::int64_t floats);
  void climb(TreeNode node, int bucket);
  std::optional<TreeNode> next_sum(TreeNode node) const;
  void join(TreeNode sum, int parts, int bucket);
  void release(int shard);
  void hold(int shard);
  bool is_deferred(TreeNode node, int bucket);
  void await_computation(TreeNode node, int bucket);
  std::optional<Due> take_due();
  void compute(TreeNode node, int bucket);

  const ReductionShape shape_;
  const ShardSpan span_;
  const std::vector<Bucket> buckets_;
  FloatPool& pool_;
  const std::function<void(const Piece&)> on_piece_;
  Mutex mutex_;  // held while the memory of a leaf is created or counted; ready() orders all other accesses
  std::deque<Due> due_ DTRAIN_GUARDED_BY(mutex_);
  std::vector<Leaf> leaves_;
  // [bucket][heap number of a node that is added up]: its parts that are complete.
  std::vector<std::atomic<std::uint8_t>> complete_parts_;
};

}  // namespace dtrain::comm
