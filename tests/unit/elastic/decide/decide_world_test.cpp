#include <gtest/gtest.h>

#include "world.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

Policy policy_of(std::uint64_t seed) {
  Policy policy;
  policy.elastic = true;
  policy.boundary = seed % 3 == 0 ? Boundary::epoch : Boundary::step;
  policy.quorum = seed % 2 == 0;
  policy.min_workers = 1 + static_cast<int>(seed % 2);
  policy.max_workers = 3 + static_cast<int>(seed % 4);
  policy.failure_limit = policy.fruitless_limit = 1'000'000;
  policy.gate = static_cast<GateFor>(seed % 3);
  policy.quarantine_base = 1s;
  policy.quarantine_cap = 8s;
  policy.hold_timeout = 3'600s;
  policy.hang_floors = {
      .loading = 5s, .computing = 5s, .first_step = 10s, .evaluating = 10s, .saving = 10s, .waiting = 20s};
  return policy;
}

constexpr std::uint64_t kSeeds = 60;

TEST(DecideWorld, AfterAnyTroubleTheJobComesToRestWithAllItsWorkers) {
  std::uint64_t generations = 0, coordinators = 0, waiting = 0;
  for (std::uint64_t seed = 0; seed < kSeeds && !testing::Test::HasFailure(); ++seed) {
    World world(policy_of(seed), seed);
    world.chaos(1'500);
    world.calm(1'500);
    // Half of the agents that have a say may have left for good: then the job must wait, whoever else is there.
    const bool waits = world.state().cut_off.has_value();
    EXPECT_TRUE(world.is_at_rest() || world.state().ending || waits) << world.describe();
    waiting += waits ? 1 : 0;
    generations += world.generations();
    coordinators += world.coordinators();
  }
  EXPECT_LT(waiting, kSeeds / 4);
  EXPECT_GT(coordinators, 2 * kSeeds) << "coordinators were hardly ever lost";
  EXPECT_GT(generations, 15 * kSeeds) << "the worlds were not troubled enough to mean anything";
}

TEST(DecideWorld, AStopEndsAnyJobInBoundedTime) {
  for (std::uint64_t seed = 0; seed < kSeeds / 2 && !testing::Test::HasFailure(); ++seed) {
    World world(policy_of(seed), 1'000 + seed);
    world.chaos(600);
    const bool was_over = world.state().ending.has_value();
    world.stop();
    world.chaos(300);
    world.calm(3'600);
    ASSERT_TRUE(world.finished()) << world.describe();
    EXPECT_TRUE(was_over || world.finish().exit_code == ExitCode::resumable) << world.describe();
  }
}

}  // namespace
}  // namespace dtrain::elastic
