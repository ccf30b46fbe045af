#include <gtest/gtest.h>

#include "decide_sim.hpp"

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
  policy.admission_check = static_cast<AdmissionCheckFor>(seed % 3);
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
    DecideSim sim(policy_of(seed), seed);
    sim.chaos(1'500);
    sim.calm(1'500);
    // Half of the voters may have left for good: then the job must wait, whichever other agents are there.
    const bool waits = sim.state().cut_off.has_value();
    EXPECT_TRUE(sim.is_at_rest() || sim.state().ending || waits) << sim.describe();
    waiting += waits ? 1 : 0;
    generations += sim.generations();
    coordinators += sim.coordinators();
  }
  EXPECT_LT(waiting, kSeeds / 4);
  EXPECT_GT(coordinators, 2 * kSeeds) << "coordinators were hardly ever lost";
  EXPECT_GT(generations, 15 * kSeeds) << "the worlds were not troubled enough to mean anything";
}

TEST(DecideWorld, AStopEndsAnyJobInBoundedTime) {
  for (std::uint64_t seed = 0; seed < kSeeds / 2 && !testing::Test::HasFailure(); ++seed) {
    DecideSim sim(policy_of(seed), 1'000 + seed);
    sim.chaos(600);
    const bool was_over = sim.state().ending.has_value();
    sim.stop();
    sim.chaos(300);
    sim.calm(3'600);
    ASSERT_TRUE(sim.finished()) << sim.describe();
    EXPECT_TRUE(was_over || sim.finish().exit_code == ExitCode::resumable) << sim.describe();
  }
}

}  // namespace
}  // namespace dtrain::elastic
