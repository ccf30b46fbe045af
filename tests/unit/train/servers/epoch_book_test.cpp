#include <gtest/gtest.h>

#include "servers/epoch_book.hpp"

namespace dtrain::train {
namespace {

constexpr EpochPlan kPlan{.samples = 45, .global_batch = 10, .shards = 1};

std::vector<std::uint64_t> all_of(EpochBook& book, int rank) {
  std::vector<std::uint64_t> numbers;
  while (const auto ticket = book.take(rank)) numbers.push_back(ticket->number);
  return numbers;
}

TEST(EpochBook, GivesEachBatchToOneWorkerWhoeverAsks) {
  EpochBook book({.epoch = kPlan, .ranks = 2});
  EXPECT_EQ(book.take(0)->number, 0u);
  EXPECT_EQ(book.take(1)->number, 1u);
  EXPECT_EQ(book.take(1)->number, 2u);
  EXPECT_EQ(book.take(1)->number, 3u);
  const auto last = book.take(0);
  EXPECT_EQ(last->slice.first, 40u);
  EXPECT_EQ(last->slice.count, 5);
  EXPECT_FALSE(book.take(0));
  EXPECT_FALSE(book.take(1));
}

TEST(EpochBook, GivesSharedBatchesToAllInOrder) {
  EpochBook book({.epoch = kPlan, .ranks = 2, .max_staleness = 0});
  const std::vector<std::uint64_t> all{0, 1, 2, 3, 4};
  EXPECT_EQ(all_of(book, 1), all);
  EXPECT_EQ(all_of(book, 0), all);
  book.done(0, 0);
  EXPECT_TRUE(book.done().empty()) << "the other one is not done";
  book.done(1, 0);
  EXPECT_EQ(book.done(), std::set<std::uint64_t>{0});
}

TEST(EpochBook, HoldsAWorkerThatIsTooFarAhead) {
  EpochBook book({.epoch = kPlan, .ranks = 2, .max_staleness = 2});
  for (int step = 0; step < 2; ++step) {
    EXPECT_TRUE(book.may_begin(1)) << step;
    book.pushed(1);
  }
  EXPECT_TRUE(book.may_begin(1));
  book.pushed(1);
  EXPECT_FALSE(book.may_begin(1));
  EXPECT_TRUE(book.may_begin(0)) << "the slowest one never waits";
  book.pushed(0);
  EXPECT_TRUE(book.may_begin(1));
}

TEST(EpochBook, NeverHoldsAWorkerWithoutABound) {
  EpochBook book({.epoch = kPlan, .ranks = 2});
  for (int step = 0; step < 1000; ++step) book.pushed(1);
  EXPECT_TRUE(book.may_begin(1));
}

TEST(EpochBook, DoesNotWaitForAWorkerToWhichNoBatchIsLeft) {
  EpochBook book({.epoch = kPlan, .ranks = 2, .max_staleness = 1});
  all_of(book, 1);
  EXPECT_FALSE(book.take(0));
  for (int step = 0; step < 5; ++step) book.pushed(1);
  EXPECT_TRUE(book.may_begin(1));
}

TEST(EpochBook, WaitsForTheLastBatchOfAWorker) {
  EpochBook book({.epoch = kPlan, .ranks = 2, .max_staleness = 1});
  EXPECT_TRUE(book.take(0));
  all_of(book, 1);
  EXPECT_FALSE(book.take(0));
  for (int step = 0; step < 2; ++step) book.pushed(1);
  EXPECT_FALSE(book.may_begin(1));
  book.pushed(0);
  EXPECT_TRUE(book.may_begin(1));
}

TEST(EpochBook, GivesOutAfterALossWhatIsMissingBeforeItStops) {
  EpochBook book({.epoch = kPlan, .position = 10, .ahead = {2, 3}, .ranks = 1});
  book.stop();
  EXPECT_EQ(all_of(book, 0), std::vector<std::uint64_t>{1}) << "then all before 4 are trained";
  EpochBook whole({.epoch = kPlan, .position = 10, .ahead = {2, 3}, .ranks = 1});
  EXPECT_EQ(all_of(whole, 0), (std::vector<std::uint64_t>{1, 4}));
}

TEST(EpochBook, StopsWhereAllHaveTheSameSharedBatches) {
  EpochBook book({.epoch = kPlan, .ranks = 2, .max_staleness = 0});
  book.take(0);
  book.take(0);
  book.take(1);
  book.stop();
  EXPECT_FALSE(book.take(0));
  EXPECT_EQ(all_of(book, 1), std::vector<std::uint64_t>{1});
}

TEST(EpochBook, GivesNoMoreThanASectionHas) {
  EpochBook book({.epoch = kPlan, .position = 10, .most = 2, .ranks = 1});
  EXPECT_EQ(all_of(book, 0), (std::vector<std::uint64_t>{1, 2}));
}

TEST(EpochBook, BeginsAmidABatchOfATrainingWithoutServers) {
  const BookPlan plan{.epoch = kPlan, .position = 16, .ranks = 1};
  EpochBook book(plan);
  const auto rest = book.take(0);
  EXPECT_EQ(rest->slice.first, 16u);
  EXPECT_EQ(rest->slice.count, 4);
  EXPECT_EQ(book.take(0)->slice.first, 20u);
  EXPECT_EQ(EpochBook::standing(plan, {1, 2}).position, 30u);
}

TEST(EpochBook, SharedBatchesGoOnAmidABatchAsStepsWithoutServersDo) {
  for (const std::uint64_t begin : {1u, 16u, 39u, 42u}) {
    SCOPED_TRACE(begin);
    const BookPlan plan{.epoch = kPlan, .position = begin, .ranks = 1, .max_staleness = 0};
    EpochBook book(plan);
    std::uint64_t position = begin;
    std::set<std::uint64_t> numbers;
    while (const auto ticket = book.take(0)) {
      EXPECT_EQ(ticket->slice.first, position);
      EXPECT_EQ(ticket->slice.count, kPlan.step_size(position));
      EXPECT_TRUE(numbers.insert(ticket->number).second) << ticket->number;
      BookPlan next = plan;
      next.position = position;
      EXPECT_EQ(EpochBook(next).take(0)->number, ticket->number) << "in a section that begins here";
      position += static_cast<std::uint64_t>(ticket->slice.count);
      const EpochBook::Standing standing = EpochBook::standing(plan, numbers);
      EXPECT_EQ(standing.position, position);
      EXPECT_EQ(standing.batches, numbers.size());
      EXPECT_TRUE(standing.ahead.empty());
    }
    EXPECT_EQ(position, kPlan.samples);
  }
}

TEST(EpochBook, StandsBehindTheLastBatchWithoutAGap) {
  const BookPlan plan{.epoch = kPlan, .ranks = 1};
  EXPECT_EQ(EpochBook::standing(plan, {0, 1, 3}).position, 20u);
  EXPECT_EQ(EpochBook::standing(plan, {0, 1, 3}).ahead, std::set<std::uint64_t>{3});
  EXPECT_EQ(EpochBook::standing(plan, {0, 1, 2, 3, 4}).position, 45u);
  EXPECT_EQ(EpochBook::standing({.epoch = kPlan, .position = 10, .ahead = {2}, .ranks = 1}, {1}).position, 30u);
}

TEST(EpochBook, IsOverWhenAllWorkersHaveFinished) {
  EpochBook book({.epoch = kPlan, .ranks = 2});
  book.finish(0);
  EXPECT_FALSE(book.is_over());
  book.finish(1);
  EXPECT_TRUE(book.is_over());
}

}  // namespace
}  // namespace dtrain::train
