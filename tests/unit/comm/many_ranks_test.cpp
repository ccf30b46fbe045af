// Reductions of more ranks than a test can connect: their frames go from memory to memory.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "leaf_joiner.hpp"
#include "reduce_operation.hpp"
#include "world.hpp"

namespace dtrain::comm {
namespace {

class Many;

class OneRank final : public Wire {
 public:
  OneRank(Many& all, int rank, const MergePlan& plan, const ReductionShape& shape);
  int rank() const override { return rank_; }
  int ranks() const override;
  const std::string& name_of(int) const override { return name_; }
  void send(int peer, Outgoing frame) override;
  void reach(CommPoint) const override {}

  void compute(const ReductionShape& shape, ShardSpan span);
  ReduceOperation& operation() { return operation_; }
  const std::vector<float>& sum() { return joiner_.first_memory(); }

 private:
  Many& all_;
  const int rank_;
  const std::string name_ = "a rank";
  FloatPool leaves_, chunks_;
  LeafJoiner joiner_;
  ReduceOperation operation_;
};

class Many {
 public:
  Many(int ranks, const ReductionShape& shape) : count_(ranks), plan_(even_spans(ranks, shape.shards)) {
    for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<OneRank>(*this, rank, plan_, shape));
    for (const auto& rank : ranks_) rank->operation().start();
    for (const auto& rank : ranks_) rank->compute(shape, shards_of_rank(rank->rank(), ranks, shape.shards));
  }
  int count() const { return count_; }
  OneRank& rank(int number) { return *ranks_[static_cast<std::size_t>(number)]; }
  void send(int from, int to, Outgoing frame) { frames_.push_back({from, to, std::move(frame)}); }
  std::size_t deliver() {
    std::size_t count = 0;
    for (; !frames_.empty(); ++count) {
      const auto [from, to, frame] = std::move(frames_.front());
      frames_.pop_front();
      const auto place = rank(to).operation().place(from, frame.header);
      std::memcpy(place->data(), frame.bytes, place->size());
      rank(to).operation().arrived(from, frame.header);
    }
    return count;
  }

 private:
  struct Sent {
    int from, to;
    Outgoing frame;
  };
  const int count_;
  const MergePlan plan_;
  std::vector<std::unique_ptr<OneRank>> ranks_;
  std::deque<Sent> frames_;
};

OneRank::OneRank(Many& all, int rank, const MergePlan& plan, const ReductionShape& shape)
    : all_(all),
      rank_(rank),
      joiner_(shape, shards_of_rank(rank, all.count(), shape.shards), leaves_,
              [this](const Piece& piece) { operation_.add(piece); }),
      operation_(*this, plan, joiner_.buckets(), shape, {}, 1, joiner_.first_memory().data(), chunks_) {}

int OneRank::ranks() const { return all_.count(); }
void OneRank::send(int peer, Outgoing frame) { all_.send(rank_, peer, std::move(frame)); }

void OneRank::compute(const ReductionShape& shape, ShardSpan span) {
  for (int shard = span.first; shard < span.last; ++shard) {
    const std::span<float> leaf = joiner_.leaf(shard);
    for (std::size_t i = 0; i < leaf.size(); ++i) leaf[i] = awkward(shard, static_cast<std::int64_t>(i));
    joiner_.ready(shard, 0, shape.size);
  }
}

// With so many ranks several buckets are cut into chunks together.
TEST(ManyRanks, EndInTheBitsOfTheTree) {
  const ReductionShape shape{.shards = 128, .size = 270'000};
  for (const int ranks : {70, 128}) {
    Many many(ranks, shape);
    many.deliver();
    const std::vector<float>& expected = direct_tree(shape);
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_TRUE(many.rank(rank).operation().is_complete());
      ASSERT_TRUE(same_bits(many.rank(rank).sum(), expected)) << rank << " of " << ranks;
    }
  }
}

}  // namespace
}  // namespace dtrain::comm
