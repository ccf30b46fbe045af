#include "bench/membership_simulation.hpp"

#include <gtest/gtest.h>

namespace dtrain::bench {
namespace {

MembershipModel model_of(int ranks, int newcomers = 1) {
  return {.ranks = ranks,
          .newcomers = newcomers,
          .link = {.bytes_per_second = 125e6, .latency = 1e-4},
          .state_bytes = 200e6};
}

TEST(SimulatedMembership, ANewcomerWaitsForTheStateAndTheOthersForIt) {
  const SimulatedChanges changes = simulate_membership(model_of(8));
  EXPECT_NEAR(changes.join.state, 1.6, 0.05) << "200 MB by 1 Gbit/s";
  EXPECT_GT(changes.join.pause, changes.join.state);
  EXPECT_LT(changes.join.pause, changes.join.state + 0.1);
}

TEST(SimulatedMembership, ALostWorkerHoldsUpTheOthersUntilItIsNoticed) {
  const SimulatedChanges changes = simulate_membership(model_of(8));
  EXPECT_LT(changes.killed.noticed, 0.01);
  EXPECT_LT(changes.killed.pause, 0.2);
  EXPECT_NEAR(changes.silent.noticed, 3.0, 0.3) << "the heartbeat timeout";
  EXPECT_NEAR(changes.silent.pause - changes.silent.noticed, changes.killed.pause, 0.1);
}

TEST(SimulatedMembership, TrainingGoesOnUntilThereIsANewCoordinator) {
  const SimulatedChanges changes = simulate_membership(model_of(8));
  EXPECT_NEAR(changes.takeover.noticed, 3.0, 0.2) << "the silence of a coordinator that is lost";
  EXPECT_GT(changes.takeover.pause, 0);
  EXPECT_LT(changes.takeover.pause, 0.3);
}

TEST(SimulatedMembership, MoreWorkersTakeTheCoordinatorAndTheMeshLonger) {
  const SimulatedChanges few = simulate_membership(model_of(4)), many = simulate_membership(model_of(64));
  EXPECT_GT(many.killed.pause, few.killed.pause);
  EXPECT_GT(many.takeover.pause, few.takeover.pause);
}

TEST(SimulatedMembership, ManyNewcomersWaitAboutTwiceAsLongAsOne) {
  const double one = transfer_seconds(model_of(1)), hundred = transfer_seconds(model_of(1, 100));
  EXPECT_NEAR(one, 1.6, 0.05);
  EXPECT_GT(hundred, one);
  EXPECT_LT(hundred, 2 * one);
  EXPECT_NEAR(transfer_seconds(model_of(100, 100)), one, 0.05) << "each has a holder to itself";
}

TEST(SimulatedMembership, ALastWorkerGoesOnAlone) {
  const SimulatedChanges changes = simulate_membership(model_of(2));
  EXPECT_GT(changes.killed.pause, 0);
  EXPECT_LT(changes.killed.pause, 0.2);
}

TEST(SimulatedMembership, GivesTheSameTwice) {
  const SimulatedChanges once = simulate_membership(model_of(5, 3)), again = simulate_membership(model_of(5, 3));
  EXPECT_EQ(once.join.pause, again.join.pause);
  EXPECT_EQ(once.killed.pause, again.killed.pause);
  EXPECT_EQ(once.takeover.pause, again.takeover.pause);
}

}  // namespace
}  // namespace dtrain::bench
