// What every transport does alike: the leaves of some neighbouring shards become complete subtrees, bucket by bucket,
// on the threads that computed them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

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
// visible to it. mutex_ guards only the creation of memory. Lifetime: the memory of a piece stays until the joiner is
// destroyed; a leaf that was added to another returns to the pool at once.
//
// Four neighbouring leaves are added in one pass, (first + second) + (third + fourth), which moves half as much memory
// as three additions; where the span ends between them, and above them, two nodes are, left + right. The thread that
// completed the last of them adds, into the memory of the first. So a rank that computes one shard after the other
// holds one leaf more than with pairs alone.
class LeafJoiner {
 public:
  // Leaves are of the shards in `span` of shape.shards. on_piece is called once for each piece and bucket, from
  // whichever thread completes it. `pool` must outlive this.
  LeafJoiner(const ReductionShape& shape, ShardSpan span, FloatPool& pool, std::function<void(const Piece&)> on_piece);
  ~LeafJoiner();

  const std::vector<Bucket>& buckets() const { return buckets_; }
  std::span<float> leaf(int shard);
  void ready(int shard, std::int64_t first, std::int64_t size);

  // The memory of the first shard's leaf, where the leftmost piece is; allocated if no caller of leaf() did.
  FloatBuffer& first_memory();

 private:
  struct Leaf {
    FloatBuffer memory;
    std::unique_ptr<std::atomic<std::int64_t>[]> missing;  // floats, by bucket
    std::atomic<int> buckets_in_use{0};                    // not yet added to a left sibling
  };

  Leaf& leaf_of(int shard) { return leaves_[static_cast<std::size_t>(shard - span_.first)]; }
  float* values_of(TreeNode node, int bucket);
  bool is_covered(TreeNode node) const;
  void climb(TreeNode node, int bucket);
  std::optional<TreeNode> next_sum(TreeNode node) const;
  void join(TreeNode sum, int parts, int bucket);
  void release(TreeNode node);

  const ReductionShape shape_;
  const ShardSpan span_;
  const std::vector<Bucket> buckets_;
  FloatPool& pool_;
  const std::function<void(const Piece&)> on_piece_;
  Mutex mutex_;  // held while the memory of a leaf is created; ready() orders all later accesses
  std::vector<Leaf> leaves_;
  // [bucket][heap number of a node that is added up]: its parts that are complete.
  std::vector<std::atomic<std::uint8_t>> complete_parts_;
};

}  // namespace dtrain::comm
