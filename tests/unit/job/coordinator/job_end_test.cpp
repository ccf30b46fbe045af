#include <gtest/gtest.h>

#include <csignal>

#include <dtrain/base/signals.hpp>

#include "common/recording_reporter.hpp"
#include "common/temporary_folder.hpp"
#include "coordinator/job_end.hpp"
#include "coordinator/job_policy.hpp"

namespace dtrain::job {
namespace {

class FakeWork final : public JobWork {
 public:
  const config::JobOptions& job() const override { return options; }
  Json document() const override { return {}; }
  int slots() const override { return 1; }
  bool runs_program() const override { return saves_itself; }
  bool uses_s3() const override { return false; }
  void adjust(elastic::Policy& policy) const override { policy.failure_limit = 7; }
  void begin(int) override {}
  void show(const Json&) override {}
  void catch_up() override {}
  bool shows_output() const override { return false; }
  void show_output(const std::string&, OutputStream, std::string_view) override {}
  void end() override { ended = true; }
  void fail(const elastic::Failure*, const std::string&, ExitCode) override {}
  std::string first_signal_words() const override { return ""; }
  bool keeps() const override { return keeps_state; }
  std::string what_next() override { return "start again"; }
  std::string lost() override { return lost_steps; }
  bool failed_to_save() const override { return false; }
  bool may_go_on() const override { return keeps_state || saves_itself; }
  FailureCode exit_code_of(const elastic::Failure&, ExitCode) const override {
    return {ExitCode::no_progress, runs_program()};
  }

  config::JobOptions options;
  bool keeps_state = false, saves_itself = false, ended = false;
  std::string lost_steps;
};

class JobEndTest : public ::testing::Test {
 protected:
  ExitCode conclude(const JobEnd& end) { return job::conclude(end, work_, {"folder"}, reporter_); }

  FakeWork work_;
  RecordingReporter reporter_;
};

TEST_F(JobEndTest, ACompleteJobIsOk) {
  EXPECT_EQ(conclude({.finish = {ExitCode::ok, ""}, .first_failure = {}}), ExitCode::ok);
  EXPECT_TRUE(work_.ended);
}

TEST_F(JobEndTest, AStopWithACheckpointIsResumable) {
  const JobEnd end{
      .finish = {ExitCode::resumable, "stopped by SIGTERM"}, .first_failure = {}, .signals = 1, .signal = 15};
  EXPECT_THROW(conclude(end), Interrupted) << "nothing is saved";
  work_.keeps_state = true;
  try {
    conclude(end);
    FAIL() << "it must throw";
  } catch (const Stopped& error) {
    EXPECT_EQ(error.hint(), "start again") << "the work knows if there is a checkpoint";
  }
}

TEST_F(JobEndTest, ASignalSaysThatNothingIsSavedOnlyWhereThatIsKnown) {
  const JobEnd end{
      .finish = {ExitCode::resumable, "stopped by SIGINT"}, .first_failure = {}, .signals = 1, .signal = SIGINT};
  const auto message = [&]() -> std::string {
    try {
      conclude(end);
    } catch (const Interrupted& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(), "stopped by SIGINT, nothing saved");
  work_.saves_itself = true;
  EXPECT_EQ(message(), "stopped by SIGINT");
}

TEST_F(JobEndTest, AStopThatSavedNothingFailsAndSaysWhatIsLost) {
  work_.keeps_state = true;
  work_.lost_steps = "the steps since m-0003 are lost";
  JobEnd end{.finish = {ExitCode::resumable, "stopped"}, .first_failure = {}, .asked = true};
  try {
    conclude(end);
    FAIL() << "it must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::failed);
    EXPECT_STREQ(error.what(), "stopped: the steps since m-0003 are lost");
    EXPECT_EQ(error.hint(), "start again");
  }
  end.asked = false;
  EXPECT_THROW(conclude(end), Stopped) << "for want of workers: whoever watches goes on from the last checkpoint";
}

TEST_F(JobEndTest, ASecondSignalEndsAtOnce) {
  work_.keeps_state = true;
  EXPECT_THROW(
      conclude({.finish = {ExitCode::resumable, "stopped"}, .first_failure = {}, .signals = 2, .signal = SIGINT}),
      Interrupted);
}

TEST_F(JobEndTest, AFailureIsReportedAndGivesTheExitCodeOfTheWork) {
  elastic::Failure failure;
  failure.host = "w1";
  failure.rank = 2;
  failure.reason = "exit code 7";
  failure.last_lines = {"last words"};
  try {
    conclude({.finish = elastic::Finish{ExitCode::failed, "too many failures"}, .first_failure = failure});
    FAIL() << "it must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::no_progress);
    EXPECT_EQ(error.hint(), "start again");
  }
  EXPECT_EQ(reporter_.warnings,
            (std::vector<std::string>{"the first failure was w1 (rank 2): exit code 7", "  last words"}));
}

TEST_F(JobEndTest, AFailureIsThatOfTheProgramWhereItsExitCodeIs) {
  const JobEnd failed{.finish = {ExitCode::failed, "its program failed"}, .first_failure = elastic::Failure{}};
  EXPECT_FALSE(is_failure_of_program(failed, work_));
  work_.saves_itself = true;
  EXPECT_TRUE(is_failure_of_program(failed, work_));
  JobEnd end = failed;
  end.finish.exit_code = ExitCode::resumable;
  EXPECT_FALSE(is_failure_of_program(end, work_)) << "it was stopped after a failure";
  end = {.finish = {ExitCode::refused, "no host"}, .first_failure = {}};
  EXPECT_FALSE(is_failure_of_program(end, work_));
}

TEST_F(JobEndTest, ShowsTheLinesOfTheFirstFailureOnce) {
  elastic::Failure failure;
  failure.last_lines = {"last words"};
  failure.lines_shown = true;
  const JobEnd end{.finish = {ExitCode::failed, "too many failures"}, .first_failure = failure};
  EXPECT_THROW(conclude(end), Error);
  EXPECT_EQ(reporter_.warnings.size(), 1u);
  RecordingReporter quiet({.quiet = true});
  EXPECT_THROW(job::conclude(end, work_, {"folder"}, quiet), Error);
  EXPECT_EQ(quiet.warnings.size(), 2u) << "it showed no note";
}

TEST_F(JobEndTest, RefusedHostsOfSshHaveAHintOfTheirOwn) {
  work_.options.launcher = config::Launcher::ssh;
  work_.options.hostfile = "my hosts.txt";
  try {
    conclude({.finish = {ExitCode::refused, "no host"}, .first_failure = {}});
    FAIL() << "it must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "`dtrain run -H 'my hosts.txt' -- true` tries the hosts alone");
  }
}

TEST(JobPolicy, TakesTheChangesOfTheWork) { EXPECT_EQ(policy_of(FakeWork()).failure_limit, 7); }

TEST(JobPolicy, NoHoldTimeoutMeansYears) {
  config::JobOptions job;
  EXPECT_EQ(policy_of(job).hold_timeout, elastic::Policy{}.hold_timeout);
  job.hold_timeout = config::Seconds(0);
  EXPECT_GT(policy_of(job).hold_timeout, std::chrono::hours(24 * 365));
  job.hold_timeout = config::Seconds(0.25);
  EXPECT_EQ(policy_of(job).hold_timeout, std::chrono::milliseconds(250));
}

TEST(JobPolicy, AgentsAreSilentForThreeSecondsAtLeast) {
  elastic::Policy policy;
  policy.heartbeat_timeout = std::chrono::milliseconds(100);
  EXPECT_EQ(agent_silence(policy), std::chrono::seconds(3));
  policy.heartbeat_timeout = std::chrono::seconds(9);
  EXPECT_EQ(agent_silence(policy), std::chrono::seconds(9));
}

TEST(JobEnd, ACoordinatorThatWasHeldUpGivesWayToALaterOne) {
  const TemporaryFolder folder;
  const JobFolder job{folder.path()};
  EXPECT_NO_THROW(refuse_if_replaced(job, 2)) << "none has written its address yet";
  write_coordinator(job, {.pid = 1, .host = "w1", .term = 3});
  EXPECT_THROW(refuse_if_replaced(job, 2), Replaced);
  EXPECT_NO_THROW(refuse_if_replaced(job, 3));
  write_file_atomic(job.coordinator(), "{");
  EXPECT_NO_THROW(refuse_if_replaced(job, 2));
}

}  // namespace
}  // namespace dtrain::job
