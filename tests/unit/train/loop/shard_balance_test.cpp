#include "train/loop/shard_balance.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace dtrain::train {
namespace {

using namespace std::chrono_literals;

std::vector<int> counts(const comm::ShardSpans& spans) {
  std::vector<int> counts;
  for (const comm::ShardSpan& span : spans) counts.push_back(span.size());
  return counts;
}

TEST(BalancedCounts, FollowTheSpeeds) {
  EXPECT_EQ(balanced_counts(std::vector<Pace>{{1}, {1}, {1}, {1}}, 16), (std::vector<int>{4, 4, 4, 4}));
  EXPECT_EQ(balanced_counts(std::vector<Pace>{{1}, {1}, {1}, {2}}, 16), (std::vector<int>{5, 5, 4, 2}));
  EXPECT_EQ(balanced_counts(std::vector<Pace>{{1}, {1e9}}, 8), (std::vector<int>{7, 1})) << "each has a shard";
  EXPECT_EQ(balanced_counts(std::vector<Pace>{{3}, {5}}, 2), (std::vector<int>{1, 1}));
}

TEST(BalancedCounts, FillTheLanesOfARank) {
  EXPECT_EQ(balanced_counts(std::vector<Pace>{{1, 4}, {1, 2}}, 12), (std::vector<int>{8, 4}));
  EXPECT_EQ(balanced_counts(std::vector<Pace>{{1, 4}, {2, 4}}, 8), (std::vector<int>{4, 4})) << "seven take as long";
}

// All ways to give four ranks twelve shards.
TEST(BalancedCounts, NoOtherCountsAreFasterForTheSlowestRank) {
  const std::vector<Pace> paces = {{1.7}, {1, 2}, {0.9, 3}, {2.6}};
  const auto slowest = [&](const std::vector<int>& each) {
    double longest = 0;
    for (std::size_t rank = 0; rank < 4; ++rank) longest = std::max(longest, paces[rank].seconds_for(each[rank]));
    return longest;
  };
  const std::vector<int> chosen = balanced_counts(paces, 12);
  EXPECT_EQ(std::accumulate(chosen.begin(), chosen.end(), 0), 12);
  for (int a = 1; a <= 9; ++a) {
    for (int b = 1; a + b <= 10; ++b) {
      for (int c = 1; a + b + c <= 11; ++c) EXPECT_GE(slowest({a, b, c, 12 - a - b - c}), slowest(chosen));
    }
  }
}

TEST(StepTimes, ComeBackFromTheirWord) {
  const StepTimes times = times_of(word_of({.own = 12'345us, .step = 67'890us, .lanes = 48}));
  EXPECT_EQ(times.own, 12'345us);
  EXPECT_EQ(times.step, 67'890us);
  EXPECT_EQ(times.lanes, 48);
  const StepTimes long_ones = times_of(word_of({.own = 24h, .step = 24h, .lanes = 4096}));
  EXPECT_GT(long_ones.own, 4min);
  EXPECT_EQ(long_ones.lanes, 255);
  EXPECT_EQ(times_of(0).own, 0us);
}

// Ranks whose shards take so long, and an exchange that takes as long as it is given.
class Ranks {
 public:
  explicit Ranks(std::vector<std::chrono::microseconds> shard) : shard_(std::move(shard)) {}
  std::vector<StepTimes> step(const comm::ShardSpans& spans) const {
    std::vector<StepTimes> times;
    std::chrono::microseconds longest{};
    for (std::size_t rank = 0; rank < shard_.size(); ++rank) {
      times.push_back({.own = spans[rank].size() * shard_[rank]});
      longest = std::max(longest, times.back().own);
    }
    const bool even = spans == comm::even_spans(static_cast<int>(spans.size()), spans.back().last);
    for (StepTimes& each : times) each.step = longest + (even ? exchange_ : exchange_ + uneven_);
    return times;
  }
  std::vector<std::chrono::microseconds> shard_;
  std::chrono::microseconds exchange_{1ms}, uneven_{};
};

// How often shards move within so many steps.
int moves(ShardBalance& balance, const Ranks& ranks, int steps) {
  int moves = 0;
  for (int step = 0; step < steps; ++step) moves += balance.note(ranks.step(balance.spans()));
  return moves;
}

TEST(ShardBalance, MovesShardsAwayFromASlowRankAndBackOnceItIsFast) {
  ShardBalance balance(4, 16, 0s);
  Ranks ranks({1ms, 1ms, 1ms, 2ms});
  EXPECT_EQ(moves(balance, ranks, 12), 0) << "one window and the first step, which does not count";
  EXPECT_EQ(moves(balance, ranks, 100), 1);
  EXPECT_EQ(counts(balance.spans()), (std::vector<int>{5, 5, 4, 2}));
  ranks.shard_[3] = 1ms;
  EXPECT_EQ(moves(balance, ranks, 100), 1);
  EXPECT_EQ(counts(balance.spans()), (std::vector<int>{4, 4, 4, 4}));
}

TEST(ShardBalance, LeavesThemWhereLittleIsToBeGained) {
  ShardBalance balance(4, 16, 0s);
  EXPECT_EQ(moves(balance, Ranks({1ms, 1050us, 1ms, 980us}), 100), 0);
  Ranks far({1ms, 1ms, 1ms, 2ms});
  far.exchange_ = 60ms;
  EXPECT_EQ(moves(balance, far, 100), 0) << "a step is mostly the exchange";
  ShardBalance few(4, 4, 0s);
  EXPECT_EQ(moves(few, Ranks({1ms, 1ms, 1ms, 9ms}), 100), 0) << "each has one";
}

TEST(ShardBalance, TakesThemBackWhereStepsBecomeNoFasterAndRestsLongerEachTime) {
  ShardBalance balance(4, 16, 0s);
  Ranks ranks({1ms, 1ms, 1ms, 2ms});
  ranks.uneven_ = 20ms;
  EXPECT_EQ(moves(balance, ranks, 1000), 2 * 7) << "with rests of 1, 2, 4, 8, 16 and 32 windows";
  EXPECT_EQ(counts(balance.spans()), (std::vector<int>{4, 4, 4, 4}));
}

TEST(ShardBalance, WaitsForItsWindowAndForTheTimesOfAllRanks) {
  ShardBalance balance(2, 8, 2s);
  const Ranks ranks({1ms, 5ms});  // 21 ms a step
  EXPECT_EQ(moves(balance, ranks, 90), 0);
  EXPECT_EQ(moves(balance, ranks, 10), 1);
  ShardBalance other(2, 8, 0s);
  for (int step = 0; step < 100; ++step) {
    std::vector<StepTimes> times = ranks.step(other.spans());
    times[1] = {};
    EXPECT_FALSE(other.note(times));
  }
}

}  // namespace
}  // namespace dtrain::train
