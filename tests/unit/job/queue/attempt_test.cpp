#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "common/temporary_folder.hpp"
#include "job/spec/prefix_owner.hpp"
#include "queue/attempt.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;

// Whether a process lives on for so long when the attempt of a job whose record names it by this text is stopped at
// once.
bool survives_stop(const std::string& machine, std::chrono::milliseconds time) {
  TemporaryFolder folder;
  JobQueue queue(folder / "q");
  queue.submit({.words = {"train"}, .cluster = "demo"}, false);
  const QueuedJob job = queue.at(1);
  const auto lock = FileLock::take(job.attempt_lock());  // of the machine that is gone, if it is another one
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  write_file_atomic(job.folder / "attempt.pid", std::to_string(child) + machine + "\n");
  Attempt(job).stop("the head is another one", true);
  bool lives = true;
  for (const auto end = std::chrono::steady_clock::now() + time; lives && std::chrono::steady_clock::now() < end;) {
    ::usleep(10'000);
    lives = ::waitpid(child, nullptr, WNOHANG) == 0;
  }
  if (lives) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  return lives;
}

TEST(Attempt, SignalsItsProcessOnTheMachineThatStartedItOnly) {
  EXPECT_FALSE(survives_stop(" " + this_boot(), 60s));
  EXPECT_TRUE(survives_stop(" other-head 0d2c5ba0-0000-0000-0000-000000000000", 100ms));
  EXPECT_TRUE(survives_stop("", 100ms)) << "the record does not say on which machine";
}

TEST(Attempt, ShowsWhetherTheExitCodeIsThatOfTheProgram) {
  for (const bool program_failed : {false, true}) {
    const TemporaryFolder folder;
    JobQueue queue(folder / "q");
    queue.submit({.words = {"launch"}}, false);
    const QueuedJob job = queue.at(1);
    write_coordinator(job.job_folder(), {.host = "h",
                                         .term = 1,
                                         .ended = "its program ended with exit code 75",
                                         .exit_code = ExitCode::resumable,
                                         .program_failed = program_failed});
    const AttemptSeen seen = Attempt(job).look();
    EXPECT_EQ(seen.kind, AttemptSeen::Kind::ended);
    EXPECT_EQ(seen.exit_code, 75);
    EXPECT_EQ(seen.by_program, program_failed);
  }
}

class Resuming : public ::testing::Test {
 protected:
  // Before its second attempt, of a job whose first one had a coordinator.
  QueuedJob job_that_began() const {
    return {.number = 1,
            .folder = folder_ / "q/0001",
            .spec = ManagedSpec{.words = {"train"}, .prefix = folder_ / "m", .resumes = true},
            .record = {.state = JobState::running, .attempts = 2, .term = 1}};
  }
  void claim(const Path& job_folder) const {
    const auto lock = FileLock::take(owner_file(folder_ / "m"), "--model-prefix");
    write_owner(*lock, folder_ / "m", {.token = "t", .job_folder = job_folder.string(), .host = "h", .process = 7});
  }

  TemporaryFolder folder_;
};

TEST_F(Resuming, ContinuesWhatAnEarlierAttemptSaved) {
  QueuedJob job = job_that_began();
  make_folder(job.folder);
  job.record.term = 0;
  EXPECT_FALSE(resumes_own(job)) << "no attempt has begun";
  job.record.progress = "m-0001.json";
  EXPECT_TRUE(resumes_own(job));
  job.record.attempts = 1;
  EXPECT_FALSE(resumes_own(job)) << "the first attempt does what the user said";
  job.record.attempts = 2;
  job.spec->resumes = false;
  EXPECT_FALSE(resumes_own(job)) << "the command knows no --resume";
}

TEST_F(Resuming, ContinuesACheckpointWhoseRecordWasLostUnlessAnotherRunWasThere) {
  QueuedJob job = job_that_began();
  make_folder(job.folder);
  make_folder(folder_ / "other");
  EXPECT_FALSE(resumes_own(job)) << "it never had the prefix";
  claim(job.folder);
  EXPECT_TRUE(resumes_own(job));
  job.record.first_term = 1;
  EXPECT_FALSE(resumes_own(job)) << "the coordinator is of an earlier job in the same folder";
  job.record.first_term = 0;
  for (const Path& owner : {folder_ / "other", Path()}) {
    claim(owner);
    EXPECT_FALSE(resumes_own(job)) << owner;
  }
  for (const char* unknown : {"", "s3://bucket/m"}) {
    job.spec->prefix = unknown;
    EXPECT_TRUE(resumes_own(job)) << unknown;
  }
}

}  // namespace
}  // namespace dtrain::job
