#include <dtrain/comm/tree.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>

#include <dtrain/base/error.hpp>

namespace dtrain::comm {

bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

int power_of_two_at_least(int n) {
  DTRAIN_CHECK(n >= 1 && n <= (1 << 30), "no power of two in range");
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n)));
}

std::vector<TreeNode> covering_nodes(int first, int last) {
  std::vector<TreeNode> nodes;
  while (first < last) {
    int level = 0;
    while (first % (2 << level) == 0 && first + (2 << level) <= last) ++level;
    nodes.push_back({level, first >> level});
    first += 1 << level;
  }
  return nodes;
}

ShardSpan shards_of_rank(int rank, int ranks, int shards) {
  // The larger spans come first: with fewer than two shards a rank each span is then one node, and else they are cut by
  // fewer borders.
  const auto boundary = [&](int r) { return r * (shards / ranks) + std::min(r, shards % ranks); };
  return {boundary(rank), boundary(rank + 1)};
}

ShardSpans even_spans(int ranks, int shards) {
  ShardSpans spans;
  for (int rank = 0; rank < ranks; ++rank) spans.push_back(shards_of_rank(rank, ranks, shards));
  return spans;
}

ShardSpans spans_of_counts(const std::vector<int>& counts) {
  ShardSpans spans;
  int first = 0;
  for (const int count : counts) {
    spans.push_back({first, first + count});
    first += count;
  }
  return spans;
}

}  // namespace dtrain::comm
