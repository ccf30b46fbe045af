// Reductions of more ranks than a test can connect: their frames go from memory to memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>

#include <dtrain/base/error.hpp>

#include "leaf_joiner.hpp"
#include "reduce_operation.hpp"
#include "world.hpp"

namespace dtrain::comm {
namespace {

class Many;

class OneRank final : public Wire {
 public:
  OneRank(Many& all, int rank, const Station& station, const ReductionShape& shape);
  int rank() const override { return rank_; }
  int ranks() const override;
  const std::string& name_of(int) const override { return name_; }
  void send(int peer, Outgoing frame) override;
  void reach(CommPoint) const override {}
  void give_back(int) override { FAIL() << "no frame was lent"; }

  void compute(const ReductionShape& shape, ShardSpan span);
  ReduceOperation& operation() { return operation_; }
  const FloatBuffer& sum() { return has_leaves_ ? joiner_.first_memory() : sum_; }

 private:
  Many& all_;
  const int rank_;
  const std::string name_ = "a rank";
  FloatPool leaves_, chunks_;
  LeafJoiner joiner_;
  const bool has_leaves_;
  FloatBuffer sum_;  // of a rank without leaves
  ReduceOperation operation_;
};

class Many {
 public:
  Many(int ranks, const ReductionShape& shape, Way way = Way::halving)
      : plan_(shape.spans_of(ranks)), stations_(Station::of_all_ranks(plan_, way)), sent_(stations_.size()) {
    for (int rank = 0; rank < ranks; ++rank) {
      ranks_.push_back(std::make_unique<OneRank>(*this, rank, stations_[static_cast<std::size_t>(rank)], shape));
    }
    for (const auto& rank : ranks_) rank->operation().start();
    for (const auto& rank : ranks_) rank->compute(shape, shape.span_of(rank->rank(), ranks));
  }
  int count() const { return static_cast<int>(stations_.size()); }
  OneRank& rank(int number) { return *ranks_[static_cast<std::size_t>(number)]; }
  void send(int from, int to, Outgoing frame) { frames_.push_back({from, to, std::move(frame)}); }
  // The frames of a connection stay in order, those of several come in an order that `seed` draws.
  void deliver(std::uint64_t seed = 0) {
    std::mt19937_64 random(seed);
    while (!frames_.empty()) {
      auto next = frames_.begin();
      if (seed > 0) {
        next += draw(random, std::min<std::size_t>(frames_.size(), 200));
        next = std::ranges::find_if(frames_, [&](const Sent& f) { return f.from == next->from && f.to == next->to; });
      }
      const Sent sent = take(next);
      land({sent, *rank(sent.to).operation().place(sent.from, sent.frame.header)});
    }
  }
  // As with several connections between two ranks: frames overtake each other, and arrive several at a time.
  void deliver_by_several(std::uint64_t seed, std::size_t at_a_time) {
    std::mt19937_64 random(seed);
    std::vector<Landing> landing;
    while (!frames_.empty() || !landing.empty()) {
      if (landing.size() < at_a_time && !frames_.empty()) {
        Sent sent = take(frames_.begin() + draw(random, std::min<std::size_t>(frames_.size(), 200)));
        if (const auto room = rank(sent.to).operation().place(sent.from, sent.frame.header)) {
          landing.push_back({std::move(sent), *room});
          continue;
        }
        ASSERT_TRUE(may_overtake(sent.frame.header.kind));
        frames_.push_back(std::move(sent));
        if (landing.empty()) continue;
      }
      const auto next = landing.begin() + draw(random, landing.size());
      const Landing landed = std::move(*next);
      landing.erase(next);
      land(landed);
    }
  }
  void expect_tree(const ReductionShape& shape) {
    const std::vector<float>& expected = direct_tree(shape);
    for (int number = 0; number < count(); ++number) {
      ASSERT_TRUE(rank(number).operation().is_complete());
      ASSERT_TRUE(same_bits(rank(number).sum(), expected)) << number << " of " << count();
    }
  }
  // What a rank sent to ranks for which `counts` says so, frames `begin` left out.
  template <typename Counts>
  std::uint64_t bytes_sent(int rank, const Counts& counts) const {
    std::uint64_t bytes = 0;
    for (const auto& [to, size] : sent_[static_cast<std::size_t>(rank)]) bytes += counts(to) ? size : 0;
    return bytes;
  }

 private:
  struct Sent {
    int from, to;
    Outgoing frame;
  };
  struct Landing {
    Sent sent;
    std::span<std::byte> room;
  };
  static std::ptrdiff_t draw(std::mt19937_64& random, std::size_t count) {
    return static_cast<std::ptrdiff_t>(random() % count);
  }
  Sent take(std::deque<Sent>::iterator next) {
    Sent sent = std::move(*next);
    frames_.erase(next);
    return sent;
  }
  void land(const Landing& landed) {
    const auto& [from, to, frame] = landed.sent;
    if (frame.header.kind != FrameKind::begin) {
      sent_[static_cast<std::size_t>(from)].push_back({to, frame.header.bytes});
    }
    std::memcpy(landed.room.data(), frame.bytes, landed.room.size());
    rank(to).operation().arrived(from, frame.header);
  }
  const MergePlan plan_;
  const std::vector<Station> stations_;
  std::vector<std::vector<std::pair<int, std::uint64_t>>> sent_;  // [from]: to whom, bytes
  std::vector<std::unique_ptr<OneRank>> ranks_;
  std::deque<Sent> frames_;
};

OneRank::OneRank(Many& all, int rank, const Station& station, const ReductionShape& shape)
    : all_(all),
      rank_(rank),
      joiner_(shape, shape.span_of(rank, all.count()), leaves_, [this](const Piece& piece) { operation_.add(piece); }),
      has_leaves_(station.plan().pieces_of(rank) > 0),
      sum_(has_leaves_ ? FloatBuffer() : FloatBuffer(shape.size)),
      operation_(*this, station, joiner_.buckets(), shape, {}, 1,
                 has_leaves_ ? joiner_.first_memory().data() : sum_.data(), chunks_) {}

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
    many.expect_tree(shape);
  }
}

TEST(ManyRanks, EndInTheBitsOfTheTreeInWhateverOrderFramesCome) {
  for (const Way way : {Way::halving, Way::direct}) {
    for (const int ranks : {2, 3, 4, 6, 7, 12, 16}) {
      for (const std::int64_t rounded : {0, 3000}) {
        const ReductionShape shape{.shards = 16, .size = 5000, .rounded = rounded};
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
          Many many(ranks, shape, way);
          many.deliver(seed);
          many.expect_tree(shape);
        }
      }
    }
  }
}

TEST(ManyRanks, EndInTheBitsOfTheTreeWhenFramesOvertakeEachOther) {
  for (const Way way : {Way::halving, Way::direct}) {
    for (const int ranks : {2, 3, 6, 8}) {
      for (const auto& [rounded, packed] : {std::pair{0, 0}, {3000, 0}, {0, 5000}}) {
        const ReductionShape shape{.shards = 16,
                                   .size = 5000,
                                   .rounded = rounded,
                                   .packed = packed,
                                   .packing = packed > 0 ? Packing::sparse : Packing::none};
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
          Many many(ranks, shape, way);
          many.deliver_by_several(seed, 1 + seed % 5);
          many.expect_tree(shape);
        }
      }
    }
  }
}

// Spans that are drawn: also empty ones, and one that has all shards.
TEST(ManyRanks, EndInTheBitsOfTheTreeOverUnevenSpans) {
  std::mt19937_64 random(12345);
  const auto draw = [&](std::uint64_t below) { return static_cast<int>(random() % below); };
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const int ranks = 2 + draw(12);
    std::vector<int> counts(static_cast<std::size_t>(ranks));
    ReductionShape shape{.shards = 1 << (1 + draw(6)), .size = 1 + draw(700)};
    if (round % 100 == 99) shape.size = 270'000;  // several buckets
    for (int shard = 0; shard < shape.shards; ++shard)
      ++counts[static_cast<std::size_t>(draw(1 + random() % counts.size()))];
    shape.spans = spans_of_counts(counts);
    const int kind = draw(3);
    if (kind == 1) shape.rounded = draw(static_cast<std::uint64_t>(shape.size) + 1);
    if (kind == 2) {
      shape.packed = draw(static_cast<std::uint64_t>(shape.size) + 1);
      shape.packing = Packing::sparse;
    }
    for (const Way way : {Way::halving, Way::direct}) {
      Many many(ranks, shape, way);
      if (round % 2 == 0) {
        many.deliver_by_several(random(), 1 + random() % 5);
      } else {
        many.deliver(random());
      }
      many.expect_tree(shape);
    }
  }
}

TEST(ManyRanks, RefuseAFrameThatComesTwiceAtATime) {
  const ReductionShape shape{.shards = 2, .size = 1000};
  Many many(2, shape, Way::direct);
  ReduceOperation& second = many.rank(1).operation();
  const FrameHeader piece = many.rank(0).operation().header_of(FrameKind::piece, 0, 0, 1);
  EXPECT_FALSE(second.place(0, piece)) << "the peer's begin is on the way";
  const FrameHeader begin{.kind = FrameKind::begin, .sequence = 1, .bytes = sizeof(ReductionBegin)};
  const auto room = second.place(0, begin);
  std::memcpy(room->data(), many.rank(0).operation().begin_bytes().data(), room->size());
  second.arrived(0, begin);
  EXPECT_TRUE(second.place(0, piece));
  EXPECT_THROW(second.place(0, piece), PeerLost);
}

TEST(ManyRanks, MayHaveNoLeaves) {
  const ReductionShape shape{.shards = 4, .size = 3000};
  for (const Way way : {Way::halving, Way::direct}) {
    Many many(6, shape, way);
    many.deliver();
    many.expect_tree(shape);
  }
}

TEST(ManyRanks, PackWhatTravels) {
  const ReductionShape shape{.shards = 8, .size = 20'000, .packed = 20'000, .packing = Packing::sparse};
  Many many(8, shape);
  many.deliver(7);
  many.expect_tree(shape);
}

// Half of it between hosts of four ranks each: of each chunk a host sends what it has added up, or the sum.
TEST(ManyRanks, SendTheBytesOfARingAndAChunkOncePerHost) {
  const ReductionShape shape{.shards = 8, .size = 64'000};
  const std::uint64_t bytes = 64'000 * sizeof(float);
  Many many(8, shape);
  many.deliver();
  std::uint64_t between_hosts = 0;
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(many.bytes_sent(rank, [](int) { return true; }), 2 * bytes * 7 / 8);
    if (rank < 4) between_hosts += many.bytes_sent(rank, [](int to) { return to >= 4; });
  }
  EXPECT_EQ(between_hosts, bytes);
}

}  // namespace
}  // namespace dtrain::comm
