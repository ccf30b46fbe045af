// Which pieces of the tree the ranks have, and how their owner joins them: the part of the tree above the ranks.
#pragma once

#include <vector>

#include <dtrain/comm/tree.hpp>

namespace dtrain::comm {

struct MergeNode {
  TreeNode node;
  int rank = -1;     // whose piece it is; -1: joined by the owner of the chunk
  int parent = -1;   // -1: the root
  int sibling = -1;  // -1: the root
};

class MergePlan {
 public:
  explicit MergePlan(const ShardSpans& spans);
  // Pieces of rank 0 come first, then those of rank 1, ...; joined nodes come last.
  const std::vector<MergeNode>& nodes() const { return nodes_; }
  const MergeNode& operator[](int number) const { return nodes_[static_cast<std::size_t>(number)]; }
  int ranks() const { return ranks_; }
  int pieces() const { return pieces_; }
  int pieces_of(int rank) const;
  int number_of_piece(TreeNode node) const;

 private:
  std::vector<MergeNode> nodes_;
  int ranks_ = 0, pieces_ = 0;
};

}  // namespace dtrain::comm
