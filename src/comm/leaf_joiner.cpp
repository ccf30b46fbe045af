#include "leaf_joiner.hpp"

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>

#include "arithmetic.hpp"

namespace dtrain::comm {

LeafJoiner::LeafJoiner(const ReductionShape& shape, ShardSpan span, FloatPool& pool,
                       std::function<void(const Piece&)> on_piece)
    : shape_(shape),
      span_(span),
      buckets_(cut_into_buckets(shape)),
      pool_(pool),
      on_piece_(std::move(on_piece)),
      leaves_(static_cast<std::size_t>(span.last - span.first)),
      complete_parts_(buckets_.size() * static_cast<std::size_t>(shape.shards)) {
  DTRAIN_CHECK(is_power_of_two(shape.shards), "the tree needs a power of two of shards");
  for (Leaf& leaf : leaves_) {
    leaf.missing = std::make_unique<std::atomic<std::int64_t>[]>(buckets_.size());
    for (std::size_t b = 0; b < buckets_.size(); ++b) leaf.missing[b] = buckets_[b].size;
    leaf.buckets_in_use = static_cast<int>(buckets_.size());
  }
}

LeafJoiner::~LeafJoiner() {
  for (Leaf& leaf : leaves_) pool_.give(std::move(leaf.memory));
}

std::span<float> LeafJoiner::leaf(int shard) {
  DTRAIN_CHECK(shard >= span_.first && shard < span_.last, "a shard of another rank");
  const MutexLock lock(mutex_);
  FloatBuffer& memory = leaf_of(shard).memory;
  if (memory.empty()) memory = pool_.take(shape_.size);
  return memory;
}

FloatBuffer& LeafJoiner::first_memory() {
  leaf(span_.first);
  return leaf_of(span_.first).memory;
}

void LeafJoiner::ready(int shard, std::int64_t first, std::int64_t size) {
  DTRAIN_CHECK(first >= 0 && size >= 0 && first + size <= shape_.size, "more floats are ready than a leaf has");
  Leaf& leaf = leaf_of(shard);
  const std::int64_t end = first + size;
  for (int b = bucket_of(buckets_, first); first < end; ++b) {
    const Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
    const std::int64_t covered = std::min(end, bucket.first + bucket.size) - first;
    first += covered;
    if (leaf.missing[static_cast<std::size_t>(b)].fetch_sub(covered, std::memory_order_acq_rel) != covered) continue;
    if (bucket.rounded) round_to_bfloat16(leaf.memory.data() + bucket.first, bucket.size);
    climb({0, shard}, b);
  }
}

float* LeafJoiner::values_of(TreeNode node, int bucket) {
  return leaf_of(node.index << node.level).memory.data() + buckets_[static_cast<std::size_t>(bucket)].first;
}

bool LeafJoiner::is_covered(TreeNode node) const {
  return node.index << node.level >= span_.first && (node.index + 1) << node.level <= span_.last;
}

void LeafJoiner::climb(TreeNode node, int bucket) {
  while (const std::optional<TreeNode> sum = next_sum(node)) {
    const int parts = 1 << (sum->level - node.level);
    const auto heap_number = static_cast<std::size_t>((shape_.shards >> sum->level) + sum->index);
    auto& complete = complete_parts_[static_cast<std::size_t>(bucket * shape_.shards) + heap_number];
    const bool is_last = complete.fetch_add(1, std::memory_order_acq_rel) + 1 == parts;
    if (!is_last) return;  // the thread of the last part goes on from here
    join(*sum, parts, bucket);
    node = *sum;
  }
  on_piece_({bucket, node, values_of(node, bucket)});
}

// The node that `node` is next added into; nullopt: these shards do not complete any.
std::optional<TreeNode> LeafJoiner::next_sum(TreeNode node) const {
  const TreeNode parent = parent_of(node), above = parent_of(parent);
  if (node.level == 0 && is_covered(above)) return above;
  return is_covered(parent) ? std::optional(parent) : std::nullopt;
}

void LeafJoiner::join(TreeNode sum, int parts, int bucket) {
  std::array<TreeNode, 4> nodes;
  std::array<float*, 4> values{};
  for (int i = 0; i < parts; ++i) {
    const auto at = static_cast<std::size_t>(i);
    nodes[at] = {sum.level - (parts == 4 ? 2 : 1), parts * sum.index + i};
    values[at] = values_of(nodes[at], bucket);
  }
  const Bucket& part = buckets_[static_cast<std::size_t>(bucket)];
  if (parts == 4) {
    add_pairs(values[0], values[1], values[2], values[3], part.size, part.rounded);
  } else {
    add(values[0], values[0], values[1], part.size, part.rounded);
  }
  for (int i = 1; i < parts; ++i) release(nodes[static_cast<std::size_t>(i)]);
}

// The memory of a leaf whose last bucket was added to another serves the next leaf.
void LeafJoiner::release(TreeNode node) {
  Leaf& leaf = leaf_of(node.index << node.level);
  if (leaf.buckets_in_use.fetch_sub(1, std::memory_order_acq_rel) == 1) pool_.give(std::move(leaf.memory));
}

}  // namespace dtrain::comm
