// Random schedules of joins, leaves, deaths and hangs: the job always ends with the bits of an undisturbed run, and
// every epoch consumes every sample once. DTRAIN_WORLD_SEEDS sets the number of schedules.
#include <gtest/gtest.h>

#include "checked_real_training.hpp"
#include "checked_toy_training.hpp"
#include "schedule.hpp"

namespace dtrain::world {
namespace {

std::string disturbed_by(std::uint32_t seed, CheckedTraining& training) {
  Schedule schedule(seed, training.samples());
  SimOptions options;
  options.fault_at = schedule.fault_at();
  elastic::Policy policy = quick_policy();
  policy.boundary = seed % 4 == 0 ? elastic::Boundary::epoch : elastic::Boundary::step;
  return CheckedJob(training, schedule.hosts(), policy, options).run([&](SimJob& job) { schedule.act(job); });
}

class RandomSchedule : public testing::TestWithParam<std::uint32_t> {};

// Every fourth seed uses the real trainer, the others the toy, which is quicker.
TEST_P(RandomSchedule, EndsWithTheSameBitsAndEverySampleOnce) {
  if (GetParam() % 4 == 1) {
    CheckedRealTraining training(6);
    EXPECT_EQ(disturbed_by(GetParam(), training), "");
  } else {
    CheckedToyTraining training({.epochs = 4});
    EXPECT_EQ(disturbed_by(GetParam(), training), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSchedule, testing::Range(1u, seeds() + 1));

}  // namespace
}  // namespace dtrain::world
