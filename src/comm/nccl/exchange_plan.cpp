#include "nccl/exchange_plan.hpp"

#include <algorithm>

namespace dtrain::comm::nccl {
namespace {

class Planner {
 public:
  Planner(const MergePlan& plan, const ReductionShape& shape, int rank, int ranks)
      : plan_(plan), rank_(rank), ranks_(ranks) {
    result_.parts = parts_of(shape);
    for (const Bucket& part : result_.parts) result_.own.push_back(chunk_of(part, rank, ranks));
    result_.root = static_cast<int>(plan.nodes().size()) - 1;
  }

  ExchangePlan make() {
    for (int part = 0; part < static_cast<int>(result_.parts.size()); ++part) {
      move_pieces(part);
      if (own(part).size > 0) join(part);
      move_sums(part);
    }
    return std::move(result_);
  }

 private:
  const Chunk& own(int part) const { return result_.own[static_cast<std::size_t>(part)]; }
  Chunk chunk(int part, int owner) const {
    return chunk_of(result_.parts[static_cast<std::size_t>(part)], owner, ranks_);
  }
  // Each rank begins with its right neighbour, so that not all write to the same one.
  template <typename Visit>
  void for_peers(Visit visit) const {
    for (int step = 1; step < ranks_; ++step) visit((rank_ + step) % ranks_);
  }

  void move_pieces(int part) {
    for (int node = 0; node < plan_.pieces(); ++node) {
      const int holder = plan_[node].rank;
      if (holder != rank_) {
        if (own(part).size > 0) result_.piece_receptions.push_back({holder, part, node, own(part)});
        continue;
      }
      for_peers([&](int peer) {
        const Chunk theirs = chunk(part, peer);
        if (theirs.size > 0) result_.piece_sends.push_back({peer, part, node, theirs});
      });
    }
  }

  // Joined nodes come after their children.
  void join(int part) {
    for (int node = 0; node < static_cast<int>(plan_.nodes().size()); ++node) {
      const int parent = plan_[node].parent;
      if (parent >= 0 && is_left(plan_[node].node)) {
        result_.joins.push_back({part, node, plan_[node].sibling, parent});
      }
    }
    std::ranges::stable_sort(result_.joins, {}, [](const Join& join) { return std::pair(join.part, join.node); });
  }

  void move_sums(int part) {
    for_peers([&](int peer) {
      if (own(part).size > 0) result_.sum_sends.push_back({peer, part, -1, own(part)});
      if (chunk(part, peer).size > 0) result_.sum_receptions.push_back({peer, part, -1, chunk(part, peer)});
    });
  }

  const MergePlan& plan_;
  const int rank_, ranks_;
  ExchangePlan result_;
};

}  // namespace

std::vector<Bucket> parts_of(const ReductionShape& shape) {
  std::vector<Bucket> parts;
  if (shape.rounded > 0) parts.push_back({0, shape.rounded, true});
  if (shape.rounded < shape.size) parts.push_back({shape.rounded, shape.size - shape.rounded, false});
  return parts;
}

ExchangePlan plan_exchange(const MergePlan& plan, const ReductionShape& shape, int rank, int ranks) {
  return Planner(plan, shape, rank, ranks).make();
}

}  // namespace dtrain::comm::nccl
