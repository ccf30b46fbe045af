#include "exchange_plan.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::comm::nccl {
namespace {

class Planner {
 public:
  Planner(const MergePlan& plan, const Bucket& part, int rank, int ranks) : plan_(plan), rank_(rank), ranks_(ranks) {
    result_.part = part;
    result_.own = chunk_of(part, rank, ranks);
    result_.root = static_cast<int>(plan.nodes().size()) - 1;
  }

  ExchangePlan make() {
    move_pieces();
    if (result_.own.size > 0) join();
    move_sums();
    return std::move(result_);
  }

 private:
  Chunk chunk(int owner) const { return chunk_of(result_.part, owner, ranks_); }
  // Each rank begins with its right neighbour, so that not all write to the same one.
  template <typename Visit>
  void for_peers(Visit visit) const {
    for (int step = 1; step < ranks_; ++step) visit((rank_ + step) % ranks_);
  }

  void move_pieces() {
    for (int node = 0; node < plan_.pieces(); ++node) {
      const int holder = plan_[node].rank;
      if (holder != rank_) {
        if (result_.own.size > 0) result_.piece_receptions.push_back({holder, node, result_.own});
        continue;
      }
      for_peers([&](int peer) {
        if (chunk(peer).size > 0) result_.piece_sends.push_back({peer, node, chunk(peer)});
      });
    }
  }

  // Joined nodes come after their children.
  void join() {
    for (int node = 0; node < static_cast<int>(plan_.nodes().size()); ++node) {
      const int parent = plan_[node].parent;
      if (parent >= 0 && is_left(plan_[node].node)) result_.joins.push_back({node, plan_[node].sibling, parent});
    }
    std::ranges::stable_sort(result_.joins, {}, &Join::node);
  }

  void move_sums() {
    for_peers([&](int peer) {
      if (result_.own.size > 0) result_.sum_sends.push_back({peer, -1, result_.own});
      if (chunk(peer).size > 0) result_.sum_receptions.push_back({peer, -1, chunk(peer)});
    });
  }

  const MergePlan& plan_;
  const int rank_, ranks_;
  ExchangePlan result_;
};

}  // namespace

std::vector<Bucket> parts_of(const ReductionShape& shape, const std::vector<FloatRange>& ranges) {
  std::vector<Bucket> parts;
  std::int64_t covered = 0;
  for (const FloatRange& range : ranges) {
    const bool rounded = range.first < shape.rounded;
    DTRAIN_CHECK(range.size > 0 && (!rounded || range.first + range.size <= shape.rounded),
                 "a part that is half rounded");
    parts.push_back({range.first, range.size, rounded});
    covered += range.size;
  }
  DTRAIN_CHECK(covered == shape.size, "the parts are not the whole leaf");
  return parts;
}

ExchangePlan plan_exchange(const MergePlan& plan, const Bucket& part, int rank, int ranks) {
  return Planner(plan, part, rank, ranks).make();
}

}  // namespace dtrain::comm::nccl
