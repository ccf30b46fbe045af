#include <gtest/gtest.h>

#include <map>

#include "loop/transfer_plan.hpp"

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
  const std::vector<Transfer> transfers = plan_transfers(roles, all_deliveries(roles, 30), 0);
  ASSERT_EQ(transfers.size(), 60u);
  std::map<std::pair<int, int>, int> chunks;  // from, to
  for (const Transfer& transfer : transfers) ++chunks[{transfer.from, transfer.to}];
  EXPECT_EQ(chunks.size(), 6u);
  for (const auto& [pair, count] : chunks) EXPECT_EQ(count, 10);
}

TEST(Transfers, GoToTheNextHolderAfterADamagedChunk) {
  const Roles roles{.leader = 0, .holders = {0, 1}, .receivers = {2}};
  const std::vector<Delivery> damaged{{5, 2}};
  const Transfer first = plan_transfers(roles, damaged, 0).at(0), second = plan_transfers(roles, damaged, 1).at(0);
  EXPECT_EQ(first.chunk, 5u);
  EXPECT_EQ(first.to, 2);
  EXPECT_NE(first.from, second.from);
}

}  // namespace
}  // namespace dtrain::train
