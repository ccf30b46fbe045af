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
    leaf.deferred.resize(buckets_.size());
    leaf.uses = static_cast<int>(buckets_.size());
  }
}

LeafJoiner::~LeafJoiner() {
  for (int shard = span_.first; shard < span_.last; ++shard) {
    pool_.give(std::move(leaf_of(shard).memory), use_of(shard));
  }
}

std::span<float> LeafJoiner::leaf(int shard) {
  DTRAIN_CHECK(shard >= span_.first && shard < span_.last, "a shard of another rank");
  const MutexLock lock(mutex_);
  FloatBuffer& memory = leaf_of(shard).memory;
  if (memory.empty()) memory = pool_.take(shape_.size, use_of(shard));
  return memory;
}

FloatBuffer& LeafJoiner::first_memory() {
  leaf(span_.first);
  return leaf_of(span_.first).memory;
}

void LeafJoiner::ready(int shard, std::int64_t first, std::int64_t size) {
  for_each_bucket({first, size}, [&](int bucket, FloatRange part) { complete(shard, bucket, part.size); });
}

// What is deferred of a bucket that is deferred in part is computed at once. A bucket that is rounded is so in every
// leaf: each is computed by itself.
void LeafJoiner::defer(int shard, FloatRange range, const std::shared_ptr<const DeferredFloats>& floats) {
  Leaf& leaf = leaf_of(shard);
  for_each_bucket(range, [&](int b, FloatRange part) {
    const Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
    if (part.size < bucket.size) {
      const DeferredFloats* const alone[] = {floats.get()};
      floats->add_up(alone, part.first, {leaf.memory.data() + part.first, static_cast<std::size_t>(part.size)});
      return complete(shard, b, part.size);
    }
    leaf.deferred[static_cast<std::size_t>(b)] = floats;
    if (use_of(shard) == FloatPool::Use::leaf) release(shard);
    if (bucket.rounded) {
      await_computation({0, shard}, b);
    } else {
      complete(shard, b, part.size);
    }
  });
}

void LeafJoiner::for_each_bucket(FloatRange range, const std::function<void(int bucket, FloatRange part)>& act) const {
  const std::int64_t end = range.first + range.size;
  DTRAIN_CHECK(range.first >= 0 && range.size >= 0 && end <= shape_.size, "more floats are ready than a leaf has");
  for (std::int64_t first = range.first; first < end;) {
    const int bucket = bucket_of(buckets_, first);
    const Bucket& whole = buckets_[static_cast<std::size_t>(bucket)];
    const FloatRange part{first, std::min(end, whole.first + whole.size) - first};
    act(bucket, part);
    first += part.size;
  }
}

// So many floats more of a leaf's bucket are there, or deferred.
void LeafJoiner::complete(int shard, int bucket, std::int64_t floats) {
  Leaf& leaf = leaf_of(shard);
  const Bucket& whole = buckets_[static_cast<std::size_t>(bucket)];
  auto& missing = leaf.missing[static_cast<std::size_t>(bucket)];
  if (missing.fetch_sub(floats, std::memory_order_acq_rel) != floats) return;
  if (whole.rounded) round_to_bfloat16(leaf.memory.data() + whole.first, whole.size);
  climb({0, shard}, bucket);
}

float* LeafJoiner::values_of(TreeNode node, int bucket) {
  return leaf_of(first_shard_of(node)).memory.data() + buckets_[static_cast<std::size_t>(bucket)].first;
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
  if (is_deferred(node, bucket)) {
    await_computation(node, bucket);
  } else {
    on_piece_({bucket, node, values_of(node, bucket)});
  }
}

// The node that `node` is next added into; nullopt: these shards do not complete any.
std::optional<TreeNode> LeafJoiner::next_sum(TreeNode node) const {
  const TreeNode parent = parent_of(node), above = parent_of(parent);
  if (node.level == 0 && is_covered(above)) return above;
  return is_covered(parent) ? std::optional(parent) : std::nullopt;
}

void LeafJoiner::join(TreeNode sum, int parts, int bucket) {
  std::array<TreeNode, 4> nodes;
  for (int i = 0; i < parts; ++i)
    nodes[static_cast<std::size_t>(i)] = {sum.level - (parts == 4 ? 2 : 1), parts * sum.index + i};
  const std::span children(nodes.data(), static_cast<std::size_t>(parts));
  const auto deferred = [&](TreeNode node) { return is_deferred(node, bucket); };
  if (std::ranges::all_of(children, deferred)) return;
  std::array<float*, 4> values{};
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (deferred(children[i])) compute(children[i], bucket);  // first: it may take new memory
    values[i] = values_of(children[i], bucket);
  }
  const Bucket& part = buckets_[static_cast<std::size_t>(bucket)];
  if (parts == 4) {
    add_pairs(values[0], values[1], values[2], values[3], part.size, part.rounded);
  } else {
    add(values[0], values[0], values[1], part.size, part.rounded);
  }
  for (const TreeNode child : children.subspan(1)) release(first_shard_of(child));
}

// A bucket less: the memory of a leaf whose last one was added to another serves the next leaf.
void LeafJoiner::release(int shard) {
  FloatBuffer memory;
  {
    const MutexLock lock(mutex_);
    Leaf& leaf = leaf_of(shard);
    if (--leaf.uses == 0) memory = std::move(leaf.memory);
  }
  pool_.give(std::move(memory), use_of(shard));
}

// A bucket more.
void LeafJoiner::hold(int shard) {
  const MutexLock lock(mutex_);
  Leaf& leaf = leaf_of(shard);
  ++leaf.uses;
  if (leaf.memory.empty()) leaf.memory = pool_.take(shape_.size, use_of(shard));
}

// The sums of pieces lie in the memory of their first leaves.
FloatPool::Use LeafJoiner::use_of(int shard) const {
  TreeNode node{0, shard};
  std::optional<TreeNode> above = next_sum(node);
  while (above && first_shard_of(*above) == shard) {
    node = *above;
    above = next_sum(node);
  }
  return above ? FloatPool::Use::leaf : FloatPool::Use::sum;
}

// All of its leaves are, or none.
bool LeafJoiner::is_deferred(TreeNode node, int bucket) {
  return leaf_of(first_shard_of(node)).deferred[static_cast<std::size_t>(bucket)] != nullptr;
}

void LeafJoiner::compute_deferred() {
  while (const auto due = take_due()) {
    const auto [node, bucket] = *due;
    compute(node, bucket);
    const Bucket& part = buckets_[static_cast<std::size_t>(bucket)];
    if (part.rounded) {
      complete(node.index, bucket, part.size);
    } else {
      on_piece_({bucket, node, values_of(node, bucket)});
    }
  }
}

void LeafJoiner::await_computation(TreeNode node, int bucket) {
  const MutexLock lock(mutex_);
  due_.emplace_back(node, bucket);
}

std::optional<LeafJoiner::Due> LeafJoiner::take_due() {
  const MutexLock lock(mutex_);
  if (due_.empty()) return std::nullopt;
  const Due due = due_.front();
  due_.pop_front();
  return due;
}

// The node's floats, in the memory of its first leaf.
void LeafJoiner::compute(TreeNode node, int bucket) {
  const auto b = static_cast<std::size_t>(bucket);
  const int first = first_shard_of(node), end = first + (1 << node.level);
  std::vector<std::shared_ptr<const DeferredFloats>> owners;
  std::vector<const DeferredFloats*> leaves;
  for (int shard = first; shard < end; ++shard) {
    owners.push_back(std::move(leaf_of(shard).deferred[b]));
    leaves.push_back(owners.back().get());
  }
  if (use_of(first) == FloatPool::Use::leaf) hold(first);
  const Bucket& part = buckets_[b];
  leaves.front()->add_up(leaves, part.first, {values_of(node, bucket), static_cast<std::size_t>(part.size)});
}

}  // namespace dtrain::comm
