#include "local_sums.hpp"

#include <algorithm>

#include <dtrain/comm/mesh.hpp>

#include "merge_plan.hpp"

namespace dtrain::comm::nccl {

LocalSums plan_local_sums(ShardSpan span) {
  LocalSums plan;
  std::vector<TreeNode> stack;
  for (int shard = span.first; shard < span.last; ++shard) {
    stack.push_back({0, shard});
    LeafPlace place{.slot = static_cast<int>(stack.size()) - 1};
    plan.slots = std::max(plan.slots, static_cast<int>(stack.size()));
    while (stack.size() >= 2) {
      const TreeNode left = stack[stack.size() - 2], right = stack.back();
      if (left.level != right.level || parent_of(left) != parent_of(right)) break;
      stack.pop_back();
      stack.back() = parent_of(left);
      ++place.additions;
    }
    plan.leaves.push_back(place);
  }
  plan.pieces = static_cast<int>(stack.size());
  return plan;
}

}  // namespace dtrain::comm::nccl

namespace dtrain::comm {

// As DeviceSums has them.
int contributions_kept_for_nccl(int shards, int ranks, bool any_order) {
  const ShardSpans spans = even_spans(ranks, shards);
  const MergePlan merge(spans);
  int most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const int subtrees = nccl::plan_local_sums(spans[static_cast<std::size_t>(rank)]).slots;
    const int received = (merge.pieces() - merge.pieces_of(rank) + ranks - 1) / ranks;
    most = std::max(most, any_order ? std::max(1, subtrees) + 1 : subtrees + 1 + received);
  }
  return most;
}

}  // namespace dtrain::comm
