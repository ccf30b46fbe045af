#include <dtrain/comm/tree.hpp>

#include <algorithm>
#include <bit>

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
  const auto boundary = [&](int r) { return static_cast<int>(std::int64_t{r} * shards / ranks); };
  return {boundary(rank), boundary(rank + 1)};
}

TreeSum::TreeSum(int shards, std::int64_t size)
    : size_(size), root_{std::countr_zero(static_cast<unsigned>(shards)), 0} {
  DTRAIN_CHECK(is_power_of_two(shards), "the tree needs a power of two of shards");
}

std::vector<float> TreeSum::take_buffer() {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      std::vector<float> buffer = std::move(spare_.back());
      spare_.pop_back();
      return buffer;
    }
  }
  return std::vector<float>(static_cast<std::size_t>(size_));
}

void TreeSum::give_back(std::vector<float> buffer) {
  const std::lock_guard lock(mutex_);
  if (static_cast<std::int64_t>(buffer.size()) == size_) spare_.push_back(std::move(buffer));
}

void TreeSum::add(TreePiece piece) {
  DTRAIN_CHECK(static_cast<std::int64_t>(piece.values.size()) == size_, "a piece of another size");
  while (piece.node != root_) {
    TreePiece sibling;
    {
      const std::lock_guard lock(mutex_);
      const TreeNode wanted{piece.node.level, piece.node.index ^ 1};
      const auto found = std::find_if(pieces_.begin(), pieces_.end(), [&](const auto& p) { return p.node == wanted; });
      if (found == pieces_.end()) {
        pieces_.push_back(std::move(piece));
        return;
      }
      sibling = std::move(*found);
      pieces_.erase(found);
    }
    // Both halves belong to this thread now, so the sum itself needs no lock.
    TreePiece& left = is_left(piece.node) ? piece : sibling;
    TreePiece& right = is_left(piece.node) ? sibling : piece;
    for (std::size_t i = 0; i < left.values.size(); ++i) left.values[i] += right.values[i];
    give_back(std::move(right.values));
    piece = TreePiece{parent_of(left.node), std::move(left.values)};
  }
  const std::lock_guard lock(mutex_);
  pieces_.push_back(std::move(piece));
}

std::vector<TreePiece> TreeSum::take_pieces() {
  const std::lock_guard lock(mutex_);
  std::sort(pieces_.begin(), pieces_.end(), [](const TreePiece& a, const TreePiece& b) {
    return (a.node.index << a.node.level) < (b.node.index << b.node.level);
  });
  return std::exchange(pieces_, {});
}

}  // namespace dtrain::comm
