#include "local_sums.hpp"

#include <algorithm>

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
