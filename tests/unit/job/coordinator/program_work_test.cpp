#include "coordinator/program_work.hpp"

#include <gtest/gtest.h>

#include <dtrain/elastic/records.hpp>

#include "common/recording_reporter.hpp"
#include "common/temporary_folder.hpp"
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
  const elastic::Policy policy = policy_of(ProgramWork(spec, {}, reporter));
  EXPECT_EQ(policy.stop_timeout, elastic::Policy{}.stop_timeout + 650s);
  EXPECT_EQ(policy.leave_timeout, elastic::Policy{}.leave_timeout + 650s);
  EXPECT_EQ(policy.worker_grace, elastic::Policy{}.worker_grace + 650s);
}

TEST(ProgramWork, PassesTheExitCodeOfTheProgramOnUnlessDtrainDecided) {
  RecordingReporter reporter;
  const ProgramWork work({}, {}, reporter);
  elastic::Failure failure;
  failure.exit_code = 75;
  const JobWork::FailureCode own = work.exit_code_of(failure, ExitCode::failed);
  EXPECT_EQ(own.code, ExitCode::resumable);
  EXPECT_TRUE(own.is_of_program);
  const JobWork::FailureCode stuck = work.exit_code_of(failure, ExitCode::no_progress);
  EXPECT_EQ(stuck.code, ExitCode::no_progress);
  EXPECT_FALSE(stuck.is_of_program);
}

TEST(ProgramWork, CountsTheTimeOfATakenOverJobFromItsBegin) {
  const TemporaryFolder folder;
  RecordingReporter reporter;
  const auto now = std::chrono::system_clock::now();
  const auto list = [](auto time, int number) {
    return Json::object({{"time", elastic::format_time(time)}, {"event", "hosts"}, {"list", number}}).dump() + "\n";
  };
  const std::string events = list(now - 9h, 1) + list(now - 2h, 1) + list(now - 1h, 2) + "torn";
  write_file_atomic(folder / "events.jsonl", events);
  ProgramWork({}, {folder.path()}, reporter).end();
  ASSERT_EQ(reporter.notes.size(), 1u);
  EXPECT_TRUE(reporter.notes[0].starts_with("All ranks are done, 2:00:0")) << reporter.notes[0];
}

}  // namespace
}  // namespace dtrain::job
