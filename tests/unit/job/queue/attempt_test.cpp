#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <dtrain/base/process.hpp>
#include <dtrain/base/wait_status.hpp>

#include "common/temporary_folder.hpp"
#include "job/spec/prefix_owner.hpp"
#include "queue/attempt.hpp"

namespace dtrain::job {
namespace {

constexpr const char* kRecord = "attempt.pid";

pid_t start_sleep(const std::vector<std::string>& environment = {}, int lock = -1) {
  return spawn({.executable = "/bin/sleep",
                .arguments = {"sleep", "60"},
                .environment = environment,
                .extra = lock,
                .group = Spawn::Group::session});
}

// A process as Attempt::start() leaves it, without a record and without a coordinator.
pid_t start_attempt(const QueuedJob& job) {
  const auto lock = FileLock::take(job.attempt_lock());
  return start_sleep({fmt::format("{}={}", kManagedVariable, job.folder.string())}, lock->descriptor().get());
}

std::string record_of(pid_t process) { return fmt::format("{} {}\n", process, process_identity(process)); }

class StoppedAttempt : public ::testing::Test {
 protected:
  ~StoppedAttempt() override {
    ::kill(bystander_, SIGKILL);
    wait_for_end(bystander_);
  }
  QueuedJob submitted() { return queue_.at(queue_.submit({.words = {"train"}, .cluster = "demo"}, false)); }
  bool bystander_lives() const { return !has_ended(bystander_); }

  TemporaryFolder folder_;
  JobQueue queue_{folder_ / "q"};
  const QueuedJob job_ = submitted(), other_ = submitted();
  const pid_t bystander_ = start_attempt(other_);
};

TEST_F(StoppedAttempt, IsFoundWhateverItsRecordSays) {
  const pid_t attempt_of_same_mark = start_sleep({fmt::format("{}={}", kManagedVariable, job_.folder.string())});
  for (const std::string& text :
       {std::string(), fmt::format("{} {}\n", bystander_, this_boot()), fmt::format("{} 7\n", bystander_),
        fmt::format("{}\n", bystander_), std::string("1 x\n"), std::string("right")}) {
    const pid_t attempt = start_attempt(job_);
    std::filesystem::remove(job_.folder / kRecord);
    if (!text.empty()) write_file_atomic(job_.folder / kRecord, text == "right" ? record_of(attempt) : text);
    Attempt(job_).stop("it is cancelled", false);
    EXPECT_EQ(wait_for_end(attempt).signal, SIGTERM) << text;
    EXPECT_TRUE(bystander_lives()) << text;
  }
  EXPECT_FALSE(has_ended(attempt_of_same_mark)) << "it holds no lock";
  ::kill(attempt_of_same_mark, SIGKILL);
  wait_for_end(attempt_of_same_mark);
}

TEST_F(StoppedAttempt, OfAnotherMachineStopsNothingHere) {
  const auto lock = FileLock::take(job_.attempt_lock());  // of the machine that is gone
  for (const std::string text : {"", " other-head 0d2c5ba0-0000-0000-0000-000000000000", " 0d2c pid:[4026531836] 7"}) {
    write_file_atomic(job_.folder / kRecord, std::to_string(bystander_) + text + "\n");
    Attempt(job_).stop("the head is another one", true);
    ::usleep(100'000);
    EXPECT_TRUE(bystander_lives()) << text;
  }
}

TEST_F(StoppedAttempt, HasNoRecordOfAnEarlierOne) {
  QueuedJob job = job_;
  job.spec->words = {"--gtest_filter=None.None"};  // of this program, which is what an attempt starts
  write_file_atomic(job.folder / kRecord, record_of(bystander_));
  make_folder(job.output());
  Attempt never(job);
  never.start();
  EXPECT_FALSE(std::filesystem::exists(job.folder / kRecord)) << "it is of an earlier attempt";
  EXPECT_EQ(never.look().kind, AttemptSeen::Kind::ended);
  std::filesystem::remove(job.output());
  Attempt attempt(job);
  attempt.start();
  EXPECT_TRUE(std::filesystem::exists(job.folder / kRecord));
  while (attempt.look().kind == AttemptSeen::Kind::alive) ::usleep(10'000);
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
