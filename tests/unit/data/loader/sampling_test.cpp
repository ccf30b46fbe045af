#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <dtrain/data/loader.hpp>

namespace dtrain::data {
namespace {

TEST(Sampling, AnEpochsOrderHoldsEveryPositionOnce) {
  auto order = epoch_order(1, 0, 1000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
  EXPECT_TRUE(epoch_order(1, 0, 0).empty());
  EXPECT_EQ(epoch_order(1, 0, 1), std::vector<std::uint32_t>{0});
}

TEST(Sampling, TheOrderIsAFunctionOfSeedAndEpoch) {
  EXPECT_EQ(epoch_order(1, 2, 100), epoch_order(1, 2, 100));
  EXPECT_NE(epoch_order(1, 2, 100), epoch_order(1, 3, 100));
  EXPECT_NE(epoch_order(1, 2, 100), epoch_order(2, 2, 100));
}

TEST(Sampling, AnOrderByBlocksHoldsEveryPositionOnceAndFewBlocksAtATime) {
  constexpr std::uint32_t kCount = 10'007, kBlock = 50;
  auto order = epoch_order(1, 0, kCount, kBlock);
  for (std::uint32_t first = 0; first < kCount; first += 16 * kBlock) {
    std::set<std::uint32_t> blocks;
    for (std::uint32_t i = first; i < std::min(kCount, first + 16 * kBlock); ++i) blocks.insert(order[i] / kBlock);
    EXPECT_LE(blocks.size(), 18u);  // the last block of the file is shorter than the others
  }
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(order[i], i);
}

// How much the classes of a batch vary, in units of what chance gives: 1 is a perfect mix. `sorted`: the file holds one
// class after the other, otherwise they lie in it at random.
double spread_of_classes(std::uint32_t block, bool sorted) {
  constexpr std::uint32_t kCount = 51'200, kClasses = 10, kBatch = 128;
  const auto places = epoch_order(77, 0, kCount), order = epoch_order(1, 0, kCount, block);
  double sum = 0;
  for (std::uint32_t first = 0; first < kCount; first += kBatch) {
    std::array<double, kClasses> seen{};
    for (std::uint32_t i = first; i < first + kBatch; ++i) {
      const std::uint32_t place = sorted ? order[i] : places[order[i]];
      ++seen[place / (kCount / kClasses)];
    }
    constexpr double kExpected = double{kBatch} / kClasses;
    for (const double count : seen) sum += (count - kExpected) * (count - kExpected) / kExpected;
  }
  return sum / (kClasses - 1) / (kCount / kBatch);
}

TEST(Sampling, MixesClassesAsChanceDoesUnlessBlocksMeetASortedFile) {
  EXPECT_NEAR(spread_of_classes(0, true), 1.0, 0.1);
  EXPECT_NEAR(spread_of_classes(0, false), 1.0, 0.1);
  EXPECT_NEAR(spread_of_classes(512, false), 1.0, 0.1);
  EXPECT_GT(spread_of_classes(512, true), 4.0);
  for (const std::uint32_t block : {0u, 128u, 512u, 2048u}) {
    RecordProperty("sorted_by_" + std::to_string(block), std::to_string(spread_of_classes(block, true)));
    RecordProperty("random_by_" + std::to_string(block), std::to_string(spread_of_classes(block, false)));
  }
}

TEST(Sampling, AllOrdersComeUpEquallyOften) {
  std::map<std::vector<std::uint32_t>, int> seen;
  for (std::uint32_t epoch = 0; epoch < 24 * 200; ++epoch) ++seen[epoch_order(9, epoch, 4)];
  EXPECT_EQ(seen.size(), 24u);
  double chi_squared = 0;
  for (const auto& [order, count] : seen) chi_squared += (count - 200.0) * (count - 200.0) / 200.0;
  EXPECT_LT(chi_squared, 49.7);  // 23 degrees of freedom: exceeded once in a thousand seeds
}

// Classes of 700, 200, 100 and 3 records, one after the other.
std::vector<std::int32_t> uneven_labels() {
  std::vector<std::int32_t> labels;
  for (const auto& [label, count] : {std::pair(0, 700), {2, 200}, {3, 100}, {7, 3}}) {
    labels.insert(labels.end(), static_cast<std::size_t>(count), label);
  }
  return labels;
}

TEST(Sampling, ABalancedOrderHasEquallyManyOfEachClass) {
  const std::vector<std::int32_t> labels = uneven_labels();
  std::map<std::int32_t, int> with_one_more;
  for (std::uint32_t epoch = 0; epoch < 40; ++epoch) {
    const EpochOrder order = balanced_order(1, epoch, labels);
    ASSERT_EQ(order.records.size(), labels.size());
    std::map<std::int32_t, int> counts;
    for (const std::uint32_t record : order.records) ++counts[labels[record]];
    ASSERT_EQ(counts.size(), 4u);
    for (const auto& [label, count] : counts) {
      ASSERT_TRUE(count == 250 || count == 251) << label;
      with_one_more[label] += count == 251;
    }
  }
  for (const auto& [label, epochs] : with_one_more) EXPECT_GT(epochs, 20) << "three of four classes have one more";
}

TEST(Sampling, ABalancedOrderTakesARecordAgainOnlyWhenItsClassIsThrough) {
  const std::vector<std::int32_t> labels = uneven_labels();
  const EpochOrder order = balanced_order(1, 5, labels);
  std::map<std::uint32_t, std::set<std::uint32_t>> copies;
  for (std::size_t i = 0; i < order.records.size(); ++i) {
    EXPECT_TRUE(copies[order.records[i]].insert(order.copies[i]).second) << "each copy comes once";
  }
  std::set<std::size_t> of_large, of_small;
  for (const auto& [record, seen] : copies) {
    EXPECT_EQ(*seen.rbegin(), seen.size() - 1);
    if (labels[record] == 0) of_large.insert(seen.size());
    if (labels[record] == 7) of_small.insert(seen.size());
  }
  EXPECT_EQ(of_large, std::set<std::size_t>{1});
  EXPECT_EQ(*of_small.begin(), 83u);  // 250 or 251 turns of 3 records
}

TEST(Sampling, ABalancedOrderIsAFunctionOfSeedAndEpochAndMixed) {
  const std::vector<std::int32_t> labels = uneven_labels();
  EXPECT_EQ(balanced_order(1, 2, labels), balanced_order(1, 2, labels));
  EXPECT_NE(balanced_order(1, 2, labels), balanced_order(1, 3, labels));
  EXPECT_NE(balanced_order(1, 2, labels), balanced_order(2, 2, labels));
  int changes = 0;
  const EpochOrder order = balanced_order(1, 2, labels);
  for (std::size_t i = 1; i < labels.size(); ++i) changes += labels[order.records[i]] != labels[order.records[i - 1]];
  EXPECT_GT(changes, 650);
}

TEST(Sampling, ARepeatedOrderTakesItsFirstRecordsSeveralTimes) {
  EXPECT_EQ(repeated({{5, 1, 4, 2, 3, 0, 6}, {}}, 3), (EpochOrder{{5, 5, 5, 1, 1, 1, 4}, {0, 1, 2, 0, 1, 2, 0}}));
  EXPECT_EQ(repeated({{5, 5, 4}, {0, 1, 0}}, 2), (EpochOrder{{5, 5, 5}, {0, 1, 2}}));
  EXPECT_EQ(repeated({{2, 1}, {}}, 1), (EpochOrder{{2, 1}, {}}));
}

TEST(Sampling, BatchesOfGroupsStandWhereTheyAreFullAndRemaindersAtTheEnd) {
  const std::vector<std::uint8_t> groups = {0, 1, 0, 1, 0, 1, 0, 1, 1, 0};
  const EpochOrder order{{9, 1, 0, 3, 2, 4, 5, 6, 7, 8}, {}};
  EXPECT_EQ(grouped(order, groups, 2).records, (std::vector<std::uint32_t>{9, 0, 1, 3, 2, 4, 5, 7, 6, 8}));
  EXPECT_EQ(grouped(order, groups, 3).records, (std::vector<std::uint32_t>{9, 0, 2, 1, 3, 5, 4, 6, 7, 8}));
  EXPECT_EQ(grouped(order, std::vector<std::uint8_t>(10), 4), order) << "one group is the order without any";
}

TEST(Sampling, GroupsLoseNoRecordAndMixNoBatch) {
  constexpr std::uint32_t kCount = 1001;
  constexpr int kBatch = 16;
  std::vector<std::uint8_t> groups(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) groups[i] = static_cast<std::uint8_t>(i % 7 % 3);
  const EpochOrder order{epoch_order(5, 2, kCount), {}};
  const std::vector<std::uint32_t> records = grouped(order, groups, kBatch).records;
  EXPECT_EQ(std::set<std::uint32_t>(records.begin(), records.end()).size(), kCount);
  EXPECT_EQ(records.size(), kCount);
  std::array<std::uint32_t, 3> sizes{};
  for (const std::uint8_t group : groups) ++sizes[group];
  std::uint32_t whole = 0;
  for (const std::uint32_t size : sizes) whole += size / kBatch * kBatch;
  for (std::uint32_t first = 0; first < whole; first += kBatch) {
    for (std::uint32_t i = first; i < first + kBatch; ++i) ASSERT_EQ(groups[records[i]], groups[records[first]]) << i;
  }
}

}  // namespace
}  // namespace dtrain::data
