// The canonical summation tree over V logical shards (V a power of two): float32 addition is not associative, so the
// grouping is fixed. Node (level, index) covers shards [index << level, (index + 1) << level) and is left child + right
// child.
//
// Words for ranges of floats (FloatRange) of a contribution, the flat buffer that a reduction adds up:
//   bucket  one of the fixed ranges that a contribution is cut into; buckets are added up and sent one by one. On GPUs
//           the executable chooses them: they are the parts in which its gradients become final.
//   chunk   the range of a bucket whose sum one rank, its owner, has first.
//   piece   one bucket of a tree node whose sibling is on another rank: what a rank sends on, chunk by chunk.
#pragma once

#include <compare>
#include <vector>

namespace dtrain::comm {

struct TreeNode {
  int level = 0;
  int index = 0;
  friend auto operator<=>(const TreeNode&, const TreeNode&) = default;
};

inline TreeNode parent_of(TreeNode node) { return {node.level + 1, node.index / 2}; }
inline bool is_left(TreeNode node) { return node.index % 2 == 0; }

// The fewest complete subtrees that cover shards [first, last), left to right.
std::vector<TreeNode> covering_nodes(int first, int last);

// Smallest power of two >= n.
int power_of_two_at_least(int n);
bool is_power_of_two(int n);

// Where a rank computes: shards [first, last).
struct ShardSpan {
  int first = 0, last = 0;
  int size() const { return last - first; }
  friend bool operator==(const ShardSpan&, const ShardSpan&) = default;
};
// Of all ranks, in their order; together they are all shards.
using ShardSpans = std::vector<ShardSpan>;

// Spans whose sizes differ by at most one: that of a rank, and those of all.
ShardSpan shards_of_rank(int rank, int ranks, int shards);
ShardSpans even_spans(int ranks, int shards);
// Spans of so many shards, rank by rank.
ShardSpans spans_of_counts(const std::vector<int>& counts);

}  // namespace dtrain::comm
