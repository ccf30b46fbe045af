#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include <dtrain/train/transfer_plan.hpp>

namespace dtrain::train {
namespace {

Claim at(std::uint32_t epoch, std::uint64_t step, std::uint64_t samples, bool has_state = true) {
  return {.has_state = has_state,
          .cursor = {.epoch = epoch, .step = step, .samples_seen = samples, .position = 0},
          .updates = samples};
}

Claim holding(Claim claim, const std::string& bits) {
  claim.bits = bits;
  return claim;
}

struct RolesCase {
  const char* what;
  std::vector<Claim> claims;
  int leader;
  std::vector<int> holders, receivers;
};

TEST(Roles, AreThoseOfTheTable) {
  const RolesCase table[] = {
      {"nobody has state, all start alike", {at(0, 0, 0, false), at(0, 0, 0, false)}, 0, {0, 1}, {}},
      {"one can read a checkpoint, one cannot", {at(0, 0, 0, false), at(3, 0, 90, false)}, 1, {1}, {0}},
      {"who has state is further than a better start", {at(9, 0, 900, false), at(0, 1, 10)}, 1, {1}, {0}},
      {"a newcomer among members at one step", {at(1, 2, 50), at(1, 2, 50), at(0, 0, 0, false)}, 0, {0, 1}, {2}},
      {"one survivor is a step behind", {at(1, 2, 50), at(1, 3, 60), at(1, 3, 60)}, 1, {1, 2}, {0}},
      {"an epoch closed here and not there needs no weights", {at(0, 5, 45), at(1, 0, 45)}, 1, {0, 1}, {}},
      {"one took the step alone that the others took again",
       {holding(at(1, 2, 50), "a"), holding(at(1, 2, 50), "b"), holding(at(1, 2, 50), "a")},
       0,
       {0, 2},
       {1}},
  };
  for (const RolesCase& row : table) {
    const Roles roles = roles_of(row.claims);
    EXPECT_EQ(roles.leader, row.leader) << row.what;
    EXPECT_EQ(roles.holders, row.holders) << row.what;
    EXPECT_EQ(roles.receivers, row.receivers) << row.what;
  }
}

TEST(Transfers, SpreadTheChunksOfEveryReceiverOverAllHolders) {
  const Roles roles{.leader = 0, .holders = {0, 2, 3}, .receivers = {1, 4}};
  const std::vector<Transfer> transfers = plan_transfers(roles, 30);
  ASSERT_EQ(transfers.size(), 60u);
  std::map<std::pair<int, int>, int> chunks;  // from, to
  for (const Transfer& transfer : transfers) ++chunks[{transfer.from, transfer.to}];
  EXPECT_EQ(chunks.size(), 6u);
  for (const auto& [pair, count] : chunks) EXPECT_EQ(count, 10);
}

Roles roles_of_many(int holders, int receivers) {
  Roles roles;
  for (int rank = 0; rank < holders; ++rank) roles.holders.push_back(rank);
  for (int rank = holders; rank < holders + receivers; ++rank) roles.receivers.push_back(rank);
  return roles;
}

TEST(Transfers, BringEveryChunkOnceToEveryReceiverAfterItsSenderHasIt) {
  for (const auto& [holders, receivers] : std::vector<std::pair<int, int>>{{1, 1}, {1, 7}, {2, 9}, {3, 300}, {8, 4}}) {
    const Roles roles = roles_of_many(holders, receivers);
    std::map<int, std::set<std::size_t>> has;
    for (const Transfer& transfer : plan_transfers(roles, 20)) {
      EXPECT_TRUE(transfer.from < holders || has[transfer.from].contains(transfer.chunk));
      EXPECT_GE(transfer.to, holders);
      EXPECT_TRUE(has[transfer.to].insert(transfer.chunk).second) << "twice";
    }
    for (const int receiver : roles.receivers) EXPECT_EQ(has[receiver].size(), 20u);
  }
  EXPECT_TRUE(plan_transfers(roles_of_many(3, 0), 20).empty());
}

// A transfer takes both of its ranks for the time of a chunk.
double chunks_time(const Roles& roles, std::size_t chunks) {
  std::map<int, double> free;
  double end = 0;
  for (const Transfer& transfer : plan_transfers(roles, chunks)) {
    const double done = std::max(free[transfer.from], free[transfer.to]) + 1;
    free[transfer.from] = free[transfer.to] = done;
    end = std::max(end, done);
  }
  return end / static_cast<double>(chunks);
}

TEST(Transfers, ToManyReceiversTakeAFewTimesAsLongAsToOne) {
  EXPECT_EQ(chunks_time(roles_of_many(1, 1), 200), 1);
  EXPECT_LE(chunks_time(roles_of_many(1, 10), 200), 2.1);
  EXPECT_LE(chunks_time(roles_of_many(1, 100), 200), 2.5);
  EXPECT_LE(chunks_time(roles_of_many(4, 100), 200), 2.2);
  EXPECT_LE(chunks_time(roles_of_many(1, 1000), 200), 3.1);
  EXPECT_LE(chunks_time(roles_of_many(1, 100), 10), 4.3) << "chunks are few";
}

TEST(Transfers, GoToTheNextHolderAfterADamagedChunk) {
  const Roles roles{.leader = 0, .holders = {0, 1}, .receivers = {2}};
  const std::vector<Delivery> damaged{{5, 2}};
  const Transfer first = plan_repeats(roles, damaged, 1).at(0), second = plan_repeats(roles, damaged, 2).at(0);
  EXPECT_EQ(first.chunk, 5u);
  EXPECT_EQ(first.to, 2);
  EXPECT_NE(first.from, second.from);
}

}  // namespace
}  // namespace dtrain::train
