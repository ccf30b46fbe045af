// Random schedules of joins, leaves, deaths and hangs: whatever happens, the job ends with the bits of an undisturbed
// run, and every sample is consumed once in every epoch. DTRAIN_WORLD_SEEDS says how many are tried.
#include <gtest/gtest.h>

#include "real_trial.hpp"
#include "schedule.hpp"
#include "toy_trial.hpp"

namespace dtrain::world {
namespace {

std::string disturbed_by(std::uint32_t seed, Trial& trial) {
  Schedule schedule(seed, trial.samples());
  SimOptions options;
  options.fate_of = schedule.fate_of();
  elastic::Policy policy = quick_policy();
  policy.boundary = seed % 4 == 0 ? elastic::Boundary::epoch : elastic::Boundary::step;
  return TrialJob(trial, schedule.hosts(), policy, options).run([&](SimJob& job) { schedule.act(job); });
}

class RandomSchedule : public testing::TestWithParam<std::uint32_t> {};

// Every fourth with the real trainer, the others with the toy, which is quicker.
TEST_P(RandomSchedule, EndsWithTheSameBitsAndEverySampleOnce) {
  if (GetParam() % 4 == 1) {
    RealTrial trial(6);
    EXPECT_EQ(disturbed_by(GetParam(), trial), "");
  } else {
    ToyTrial trial({.epochs = 4});
    EXPECT_EQ(disturbed_by(GetParam(), trial), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSchedule, testing::Range(1u, seeds() + 1));

}  // namespace
}  // namespace dtrain::world
