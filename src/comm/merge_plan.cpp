#include "merge_plan.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::comm {

MergePlan::MergePlan(const ShardSpans& spans) : ranks_(static_cast<int>(spans.size())) {
  int rank = 0;
  for (const ShardSpan& span : spans) {
    for (const TreeNode node : covering_nodes(span.first, span.last)) nodes_.push_back({node, rank, -1, -1});
    ++rank;
  }
  pieces_ = static_cast<int>(nodes_.size());
  // Left to right on a stack: what is on top of it joins as soon as its sibling comes.
  std::vector<int> open;
  for (int piece = 0; piece < pieces_; ++piece) {
    open.push_back(piece);
    while (open.size() >= 2) {
      const int right = open.back(), left = open[open.size() - 2];
      const TreeNode a = (*this)[left].node, b = (*this)[right].node;
      if (a.level != b.level || !is_left(a) || b.index != a.index + 1) break;
      const int parent = static_cast<int>(nodes_.size());
      nodes_.push_back({parent_of(a), -1, -1, -1});
      nodes_[static_cast<std::size_t>(left)].parent = nodes_[static_cast<std::size_t>(right)].parent = parent;
      nodes_[static_cast<std::size_t>(left)].sibling = right;
      nodes_[static_cast<std::size_t>(right)].sibling = left;
      open.resize(open.size() - 2);
      open.push_back(parent);
    }
  }
  DTRAIN_CHECK(open.size() == 1, "the pieces of all ranks are the whole tree");
}

int MergePlan::pieces_of(int rank) const {
  return static_cast<int>(std::ranges::count(nodes_, rank, &MergeNode::rank));
}

int MergePlan::number_of_piece(TreeNode node) const {
  const auto end = nodes_.begin() + pieces_;
  const auto found = std::find_if(nodes_.begin(), end, [&](const MergeNode& piece) { return piece.node == node; });
  DTRAIN_CHECK(found != end, "a piece that the plan does not know");
  return static_cast<int>(found - nodes_.begin());
}

}  // namespace dtrain::comm
