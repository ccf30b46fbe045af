#include "coordinator/program_work.hpp"

#include <gtest/gtest.h>

#include "common/recording_reporter.hpp"
#include "coordinator/job_policy.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;

TEST(ProgramWork, GivesItsRanksTheWholeGraceWhenTheJobStops) {
  RecordingReporter reporter;
  config::ProgramSpec spec;
  spec.program.grace = 600s;
  spec.program.save_signal = 10;
  spec.program.save_timeout = 50s;
  const elastic::Policy policy = policy_of(ProgramWork(spec, reporter));
  EXPECT_EQ(policy.stop_timeout, elastic::Policy{}.stop_timeout + 650s);
  EXPECT_EQ(policy.leave_timeout, elastic::Policy{}.leave_timeout + 650s);
  EXPECT_EQ(policy.worker_grace, elastic::Policy{}.worker_grace + 650s);
}

TEST(ProgramWork, ShowsTheOutputOfItsRanksToAUserOnly) {
  RecordingReporter reporter;
  config::ProgramSpec spec;
  EXPECT_TRUE(ProgramWork(spec, reporter).shows_output());
  spec.options.job.detach = true;
  EXPECT_FALSE(ProgramWork(spec, reporter).shows_output());
}

}  // namespace
}  // namespace dtrain::job
