#include <gtest/gtest.h>

#include <utility>

#include <dtrain/base/error.hpp>

#include "queue/decide_jobs.hpp"

namespace dtrain::job {
namespace {

using Kind = AttemptSeen::Kind;
const int kUsualAttempts = ManagedSpec{}.retries + 1;

JobSeen job(int number, int priority = 0) {
  return {.number = number, .spec = {.words = {"train"}, .priority = priority}};
}

JobSeen record_seen(JobRecord record) {
  JobSeen one = job(1);
  one.record = std::move(record);
  return one;
}

JobSeen running(int number, AttemptSeen attempt) {
  JobSeen one = job(number);
  one.record = {.state = JobState::running, .attempts = 1};
  one.attempt = std::move(attempt);
  return one;
}

AttemptSeen ended(ExitCode code, std::string cause = "no memory", std::string progress = "") {
  return {.kind = Kind::ended,
          .exit_code = static_cast<int>(code),
          .cause = std::move(cause),
          .progress = std::move(progress)};
}

JobRecord record_after(const JobSeen& seen, std::int64_t now = 1000) {
  const QueueDecision made = decide_jobs({.jobs = {seen}}, now);
  return made.records.contains(seen.number) ? made.records.at(seen.number) : seen.record;
}

// The record after so many attempts in a row that end like this one.
JobRecord after_attempts(int times, const AttemptSeen& attempt) {
  JobSeen one = running(1, attempt);
  for (int time = 0; time < times; ++time) {
    one.record.state = JobState::running;
    one.record = record_after(one);
  }
  return one.record;
}

TEST(DecideJobs, StartsTheOldestOfTheHighestPriority) {
  const QueueDecision made = decide_jobs({.jobs = {job(1), job(2, 5), job(3, 5)}}, 1000);
  EXPECT_EQ(made.start, 2);
  EXPECT_EQ(made.records.at(2).state, JobState::running);
  EXPECT_EQ(made.records.at(2).attempts, 1);
  EXPECT_EQ(made.records.size(), 1u);
}

TEST(DecideJobs, RetriesAFailedJobAsOftenAsItsUserWants) {
  JobSeen one = running(1, ended(ExitCode::failed));
  one.spec.retries = 0;
  EXPECT_EQ(record_after(one).state, JobState::failed);
  one.spec.retries = 1;
  one.record = record_after(one);
  EXPECT_EQ(one.record.state, JobState::waiting);
  one.record.state = JobState::running;
  EXPECT_EQ(record_after(one).state, JobState::failed);
}

TEST(DecideJobs, HoldsAllJobsWhileTheQueueIsHeld) {
  const QueueDecision made =
      decide_jobs({.jobs = {running(1, {.kind = Kind::alive}), job(2)}, .hold = "the budget is spent"}, 1000);
  EXPECT_EQ(made.stop, std::vector<int>{1});
  EXPECT_FALSE(made.start);
  const QueueDecision waits = decide_jobs({.jobs = {job(2)}, .hold = "the budget is spent"}, 1000);
  EXPECT_FALSE(waits.start);
  EXPECT_EQ(waits.records.at(2).why, "waits: the budget is spent");
  EXPECT_EQ(record_after(running(1, ended(ExitCode::resumable, "the budget is spent"))).state, JobState::waiting);
}

TEST(DecideJobs, LetsARunningJobGoOnWhereNoneMayStart) {
  const QueueDecision made = decide_jobs({.jobs = {running(1, {.kind = Kind::alive})}, .no_start = "unreadable"}, 1000);
  EXPECT_TRUE(made.stop.empty());
  const QueueDecision waits = decide_jobs({.jobs = {job(2)}, .no_start = "unreadable"}, 1000);
  EXPECT_FALSE(waits.start);
  EXPECT_EQ(waits.records.at(2).why, "waits: unreadable");
  JobSeen cancelled = job(3);
  cancelled.cancelled = true;
  EXPECT_EQ(decide_jobs({.jobs = {cancelled}, .no_start = "unreadable"}, 1000).records.at(3).state,
            JobState::cancelled);
}

TEST(DecideJobs, StartsNothingBesideARunningJob) {
  EXPECT_FALSE(decide_jobs({.jobs = {running(1, {.kind = Kind::alive}), job(2, 9)}}, 1000).start);
}

TEST(DecideJobs, StartsTheNextJobInTheLookThatSeesTheEnd) {
  const QueueDecision made = decide_jobs({.jobs = {running(1, ended(ExitCode::ok)), job(2)}}, 1000);
  EXPECT_EQ(made.records.at(1).state, JobState::done);
  EXPECT_EQ(made.start, 2);
}

TEST(DecideJobs, TriesAgainAfterALossWithGrowingPauses) {
  const AttemptSeen lost{.kind = Kind::lost, .cause = "its process was killed"};
  const JobRecord once = after_attempts(1, lost), twice = after_attempts(2, lost);
  EXPECT_EQ(once.state, JobState::waiting);
  EXPECT_EQ(once.why, "its process was killed");
  EXPECT_EQ(once.not_before, 1000 + kFirstPause);
  EXPECT_EQ(twice.not_before, 1000 + 3 * kFirstPause);
  EXPECT_EQ(after_attempts(kMostLosses - 1, lost).not_before, 1000 + kLongestPause);
  EXPECT_EQ(after_attempts(kMostLosses, lost).state, JobState::failed);
}

TEST(DecideJobs, StartsNoSoonerThanThePauseIsOver) {
  JobSeen one = job(1);
  one.record.not_before = 1003;
  EXPECT_FALSE(decide_jobs({.jobs = {one}}, 1002).start);
  EXPECT_EQ(decide_jobs({.jobs = {one}}, 1003).start, 1);
}

TEST(DecideJobs, WaitsForNoTimeThatAClockSetThatWasAhead) {
  constexpr std::int64_t kAhead = 1000 + 7200;
  JobSeen paused = record_seen({.not_before = kAhead + kLongestPause});
  EXPECT_EQ(decide_jobs({.jobs = {paused}}, 1000).start, 1);
  EXPECT_FALSE(decide_jobs({.jobs = {paused}}, kAhead).start);
  JobSeen alone = record_seen({.machines_until = kAhead + kMachinePatience, .machines = 3});
  alone.spec.cluster = "demo";
  EXPECT_EQ(decide_jobs({.jobs = {alone}, .machines = 2}, 1000).start, 1);
  EXPECT_FALSE(decide_jobs({.jobs = {alone}, .machines = 2}, kAhead).start);
  const JobSeen over = record_seen({.state = JobState::done, .ended = kAhead});
  EXPECT_TRUE(decide_jobs({.jobs = {over}, .goes_down = true}, 1000).close);
  EXPECT_FALSE(decide_jobs({.jobs = {over}, .goes_down = true}, kAhead - 1).close);
}

TEST(DecideJobs, APauseHoldsTheLine) {
  JobSeen first = job(1, 1);
  first.record.not_before = 1003;
  EXPECT_FALSE(decide_jobs({.jobs = {first, job(2)}}, 1000).start);
}

TEST(DecideJobs, GivesUpAfterFailuresWithoutANewerCheckpointAndSaysWhy) {
  EXPECT_EQ(after_attempts(kUsualAttempts - 1, ended(ExitCode::failed)).state, JobState::waiting);
  const JobRecord record = after_attempts(kUsualAttempts, ended(ExitCode::failed));
  EXPECT_EQ(record.state, JobState::failed);
  EXPECT_NE(record.why.find("no memory"), std::string::npos);
  EXPECT_EQ(record.exit_code, 1);
  EXPECT_EQ(record.ended, 1000);
}

TEST(DecideJobs, CountsFailuresAnewAfterANewerCheckpoint) {
  JobSeen one = running(1, ended(ExitCode::failed, "no memory", "m/a-0002.json"));
  one.record.failures = kUsualAttempts - 1;
  one.record.progress = "m/a-0001.json";
  const JobRecord record = record_after(one);
  EXPECT_EQ(record.state, JobState::waiting);
  EXPECT_EQ(record.failures, 1);
}

TEST(DecideJobs, IsPatientWithMachinesThatRefuse) {
  EXPECT_EQ(after_attempts(kUsualAttempts + 1, ended(ExitCode::refused)).state, JobState::waiting);
  EXPECT_EQ(after_attempts(kMostRefusals, ended(ExitCode::refused)).state, JobState::failed);
}

TEST(DecideJobs, FailsAtOnceWithoutProgress) {
  EXPECT_EQ(after_attempts(1, ended(ExitCode::no_progress)).state, JobState::failed);
}

TEST(DecideJobs, CountsAFailedProgramWhateverItsExitCode) {
  for (const ExitCode code : {ExitCode::resumable, ExitCode::no_progress, ExitCode::refused, ExitCode::usage}) {
    AttemptSeen failed = ended(code);
    failed.by_program = true;
    EXPECT_EQ(after_attempts(1, failed).failures, 1) << static_cast<int>(code);
    EXPECT_EQ(after_attempts(kUsualAttempts - 1, failed).state, JobState::waiting) << static_cast<int>(code);
    EXPECT_EQ(after_attempts(kUsualAttempts, failed).state, JobState::failed) << static_cast<int>(code);
    JobSeen one = running(1, failed);
    one.spec.retries = 0;
    EXPECT_EQ(record_after(one).state, JobState::failed) << static_cast<int>(code);
  }
}

TEST(DecideJobs, DoesNotRepeatACommandThatIsRefused) {
  AttemptSeen refused = ended(ExitCode::usage, "--model-prefix m/a: has checkpoints already");
  const JobRecord record = after_attempts(1, refused);
  EXPECT_EQ(record.state, JobState::failed);
  EXPECT_EQ(record.why, "--model-prefix m/a: has checkpoints already");
  EXPECT_EQ(record.exit_code, 2);
  refused.began = true;
  EXPECT_EQ(after_attempts(1, refused).state, JobState::waiting) << "it is the code of a program that was started";
}

TEST(DecideJobs, RemembersProgressThatTheLastAttemptDoesNotShow) {
  JobSeen one = running(1, {.kind = Kind::lost});
  one.record.progress = "m/a-0001.json";
  one.record.losses = kMostLosses - 2;
  const JobRecord record = record_after(one);
  EXPECT_EQ(record.progress, "m/a-0001.json");
  EXPECT_EQ(record.losses, kMostLosses - 1);
}

TEST(DecideJobs, ResumesWhatStoppedWithACheckpointUnlessTheUserStoppedIt) {
  AttemptSeen stopped = ended(ExitCode::resumable, "stopped by SIGTERM");
  EXPECT_EQ(after_attempts(1, stopped).state, JobState::waiting);
  EXPECT_EQ(after_attempts(1, stopped).failures, 0);
  stopped.by_user = true;
  EXPECT_EQ(after_attempts(1, stopped).state, JobState::stopped);
  AttemptSeen unsaved = ended(ExitCode::failed, "the steps since m-0001 are lost");
  unsaved.by_user = true;
  EXPECT_EQ(after_attempts(1, unsaved).state, JobState::stopped) << "the user wants it to end, saved or not";
}

TEST(DecideJobs, CancelsAWaitingJobAtOnceAndStopsARunningOne) {
  JobSeen waits = job(1), runs = running(2, {.kind = Kind::alive});
  waits.cancelled = runs.cancelled = true;
  const QueueDecision made = decide_jobs({.jobs = {waits, runs}}, 1000);
  EXPECT_EQ(made.records.at(1).state, JobState::cancelled);
  EXPECT_EQ(made.stop, std::vector<int>{2});
  EXPECT_FALSE(made.records.contains(2));
}

TEST(DecideJobs, ACancelledJobIsNotResumedHoweverItEnds) {
  for (const AttemptSeen& attempt :
       {ended(ExitCode::resumable), ended(ExitCode::failed), AttemptSeen{.kind = Kind::lost}}) {
    JobSeen one = running(1, attempt);
    one.cancelled = true;
    EXPECT_EQ(record_after(one).state, JobState::cancelled);
  }
  JobSeen won = running(1, ended(ExitCode::ok));
  won.cancelled = true;
  EXPECT_EQ(record_after(won).state, JobState::done);
}

TEST(DecideJobs, SaysOfACheckpointOnlyWhatIsCertain) {
  JobSeen one = running(1, ended(ExitCode::resumable));
  one.cancelled = one.spec.resumes = true;
  EXPECT_EQ(record_after(one).why, "with a checkpoint");
  one.cancelled_now = true;
  EXPECT_EQ(record_after(one).why, kUnsaved);
  one.cancelled_now = one.spec.resumes = false;
  EXPECT_EQ(record_after(one).why, "") << "a program of the user's saves what it wants";
}

JobSeen cluster_job(int number, int hosts = 0) {
  JobSeen one = job(number);
  one.spec.cluster = "demo";
  one.spec.hosts = hosts;
  return one;
}

TEST(DecideJobs, WaitsForTheMachinesThatTheUserAskedFor) {
  const QueueDecision made = decide_jobs({.jobs = {cluster_job(1, 3)}, .machines = 2}, 1000);
  EXPECT_FALSE(made.start);
  EXPECT_EQ(made.records.at(1).why, "waits until 3 machines are ready; 2 of them are");
  EXPECT_EQ(decide_jobs({.jobs = {cluster_job(1, 3)}, .machines = 3}, 1000).start, 1);
}

TEST(DecideJobs, MachinesThatMayNeverComeDoNotHoldTheLine) {
  EXPECT_EQ(decide_jobs({.jobs = {cluster_job(1, 3), cluster_job(2)}, .machines = 2}, 1000).start, 2);
}

TEST(DecideJobs, WaitsSomeTimeForTheMachinesThatTheJobHadBeforeItWasLost) {
  JobSeen one = cluster_job(1);
  one.record = {.state = JobState::running, .attempts = 1, .machines = 3};
  one.attempt = {.kind = Kind::lost};
  one.record = record_after(one);
  one.attempt = {};
  EXPECT_FALSE(decide_jobs({.jobs = {one}, .machines = 2}, 1000 + kMachinePatience - 1).start);
  EXPECT_EQ(decide_jobs({.jobs = {one}, .machines = 3}, 1000 + kFirstPause).start, 1);
  EXPECT_EQ(decide_jobs({.jobs = {one}, .machines = 2}, 1000 + kMachinePatience).start, 1);
}

TEST(DecideJobs, NeverStartsOnAClusterWithoutMachines) {
  EXPECT_FALSE(decide_jobs({.jobs = {cluster_job(1)}, .machines = 0}, 1000).start);
}

TEST(DecideJobs, ClosesAMinuteAfterTheLastJobIfThatWasAskedFor) {
  JobSeen one = job(1);
  one.record = {.state = JobState::failed, .ended = 1000};
  EXPECT_FALSE(decide_jobs({.jobs = {one}, .goes_down = true}, 1000 + kDownGrace - 1).close);
  EXPECT_TRUE(decide_jobs({.jobs = {one}, .goes_down = true}, 1000 + kDownGrace).close);
  EXPECT_FALSE(decide_jobs({.jobs = {one}}, 1000 + kDownGrace).close);
  EXPECT_FALSE(decide_jobs({.jobs = {one, job(2)}, .goes_down = true}, 1000 + kDownGrace).close);
}

}  // namespace
}  // namespace dtrain::job
