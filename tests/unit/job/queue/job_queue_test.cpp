#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json_without.hpp>

#include "common/temporary_folder.hpp"
#include "queue/job_queue.hpp"

namespace dtrain::job {
namespace {

ManagedSpec spec_of_test(int priority = 0) {
  return {.words = {"train", "--lr", "0.1", "caf\xe9 one"},
          .environment = {"OMP_NUM_THREADS=2"},
          .folder = "/data",
          .prefix = "/data/m/caf\xe9",
          .cluster = "demo",
          .priority = priority,
          .hosts = 3,
          .resumes = true,
          .continues = true,
          .retries = 7,
          .submitted = 1'700'000'000};
}

class JobQueueTest : public ::testing::Test {
 protected:
  QueuedJob only_job() {
    std::vector<QueuedJob> jobs = queue_.read();
    EXPECT_EQ(jobs.size(), 1u);
    return jobs.at(0);
  }
  std::string message_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  JobQueue queue_{folder_ / "q"};
};

TEST_F(JobQueueTest, ReadsWhatWasSubmitted) {
  EXPECT_EQ(queue_.submit(spec_of_test(7), false), 1);
  EXPECT_EQ(queue_.submit(spec_of_test(), false), 2);
  const QueuedJob job = queue_.at(1);
  ASSERT_TRUE(job.spec);
  EXPECT_EQ(*job.spec, spec_of_test(7));
  EXPECT_EQ(job.record, JobRecord{});
  EXPECT_EQ(job.job_folder().path, folder_ / "q/0001");
}

TEST_F(JobQueueTest, RefusesAJobThatSavesWhereAnOpenOneDoes) {
  ManagedSpec spec = spec_of_test();
  spec.continues = false;
  EXPECT_FALSE(queue_.shares_prefix(spec));
  queue_.submit(spec, false);
  EXPECT_NE(message_of([&] { queue_.submit(spec, false); }).find("job 1 of the queue, which is waiting, saves"),
            std::string::npos);
  JobQueue::write(queue_.at(1), {.state = JobState::running, .attempts = 1});
  EXPECT_NE(message_of([&] { queue_.shares_prefix(spec); }).find("job 1 of the queue, which is running, saves"),
            std::string::npos);
  EXPECT_EQ(queue_.read().size(), 1u) << "nothing stays of the refused one";
  ManagedSpec other = spec;
  other.prefix = "/data/m/b";
  EXPECT_EQ(queue_.submit(other, false), 2);
  other.prefix.clear();
  EXPECT_EQ(queue_.submit(other, false), 3);
  EXPECT_EQ(queue_.submit(other, false), 4) << "neither saves anything";
  spec.continues = true;
  EXPECT_TRUE(queue_.shares_prefix(spec));
  EXPECT_EQ(queue_.submit(spec, false), 5);
  spec.continues = false;
  for (const int number : {1, 5}) JobQueue::write(queue_.at(number), {.state = JobState::done});
  EXPECT_EQ(queue_.submit(spec, false), 6);
}

TEST(ManagedJob, ReadsWhatEarlierVersionsWrote) {
  const JobRecord begun{.attempts = 1, .term = 3, .first_term = 2};
  const std::string spec = to_json(spec_of_test()).dump(), record = to_json(begun).dump();
  EXPECT_EQ(job_record_from(record, "state.json"), begun);
  constexpr std::array<std::string_view, 4> kLater{"model_prefix", "continues", "retries", "first_term"};
  const ManagedSpec earlier = managed_spec_from(parse_json_without(spec, "spec", kLater).dump(), "spec.json");
  EXPECT_TRUE(earlier.prefix.empty());
  EXPECT_FALSE(earlier.continues);
  EXPECT_EQ(job_record_from(parse_json_without(record, "state", kLater).dump(), "state.json").first_term, 0u);
}

TEST_F(JobQueueTest, ForgetsAJobThatIsOverAndUsesItsNumberNoMore) {
  queue_.submit(spec_of_test(), false);
  queue_.submit(spec_of_test(), false);
  EXPECT_NE(message_of([&] { queue_.forget(2); }).find("job 2 is not over"), std::string::npos);
  JobQueue::write(queue_.at(2), {.state = JobState::failed, .ended = 1'700'000'000});
  EXPECT_EQ(queue_.read().size(), 2u);
  queue_.forget(2);
  EXPECT_EQ(only_job().number, 1);
  EXPECT_NE(message_of([&] { queue_.forget(2); }).find("no job 2"), std::string::npos);
  EXPECT_EQ(queue_.submit(spec_of_test(), false), 3);
}

TEST_F(JobQueueTest, AJobThatWasRemovedByHandLeavesNeitherItsNumberNorItsEnd) {
  queue_.submit(spec_of_test(), false);
  JobQueue::write(queue_.at(1), {.state = JobState::done});
  EXPECT_EQ(only_job().record.state, JobState::done);
  std::filesystem::remove_all(queue_.at(1).folder);
  EXPECT_TRUE(queue_.read().empty());
  EXPECT_EQ(queue_.submit(spec_of_test(7), false), 2);
  JobQueue::write(queue_.at(2), {.state = JobState::done});
  EXPECT_EQ(only_job().record.state, JobState::done);
  std::filesystem::remove_all(queue_.at(2).folder);
  std::filesystem::remove(folder_ / "q/last-number");
  std::filesystem::create_directory(folder_ / "q/0001");  // takes the inode that became free
  EXPECT_EQ(queue_.submit(spec_of_test(), false), 2) << "as an earlier version counts";
  EXPECT_EQ(queue_.read().at(1).record.state, JobState::waiting) << "another folder of the same name";
}

TEST_F(JobQueueTest, NamesJobsThatHaveBeenOverForSomeDays) {
  constexpr std::int64_t kDay = 86'400, kNow = 1'700'000'000;
  for (int i = 0; i < 3; ++i) queue_.submit(spec_of_test(), false);
  JobQueue::write(queue_.at(1), {.state = JobState::done, .ended = kNow - 3 * kDay});
  JobQueue::write(queue_.at(2), {.state = JobState::failed, .ended = kNow - 3 * kDay + 1});
  EXPECT_EQ(jobs_over_for(queue_.read(), 3, kNow), (std::vector<int>{1}));
  EXPECT_EQ(jobs_over_for(queue_.read(), 2, kNow), (std::vector<int>{1, 2}));
}

TEST_F(JobQueueTest, ForgetsNothingByItselfUnlessItIsToldTo) {
  queue_.submit(spec_of_test(), false);
  EXPECT_EQ(queue_.forget_after(), 0);
  queue_.set_forget_after(30);
  EXPECT_EQ(queue_.forget_after(), 30);
  EXPECT_EQ(only_job().number, 1) << "the setting is no job";
  write_file_atomic(folder_ / "q/forget-after", "-3\n");
  EXPECT_EQ(queue_.forget_after(), 0);
}

TEST_F(JobQueueTest, KeepsTheRecord) {
  queue_.submit(spec_of_test(), false);
  const JobRecord record{.state = JobState::waiting,
                         .why = "no memory",
                         .exit_code = 1,
                         .attempts = 2,
                         .failures = 3,
                         .refusals = 4,
                         .losses = 5,
                         .progress = "m/a-0001.json",
                         .not_before = 6,
                         .machines_until = 7,
                         .machines = 8,
                         .begun = 9,
                         .ended = 10,
                         .term = 11,
                         .log_begin = 12};
  JobQueue::write(only_job(), record);
  EXPECT_EQ(only_job().record, record);
}

TEST_F(JobQueueTest, LeavesAJobOfANewerDtrainUnread) {
  queue_.submit(spec_of_test(), false);
  Json spec = to_json(spec_of_test());
  spec["schema"] = "dtrain.managed-job/2";
  write_file_atomic(folder_ / "q/0001/spec.json", spec.dump());
  EXPECT_FALSE(only_job().spec);
  EXPECT_NE(only_job().problem.find("newer dtrain"), std::string::npos);
  write_file_atomic(folder_ / "q/0001/spec.json", "{\"schema\": 7");
  EXPECT_FALSE(only_job().spec);
}

TEST_F(JobQueueTest, KnowsAJobThatAnotherUserMayHaveSubmitted) {
  queue_.submit(spec_of_test(), false);
  EXPECT_EQ(only_job().foreign, "");
  const Path spec = only_job().folder / "spec.json";
  ASSERT_EQ(::chmod(spec.c_str(), 0620), 0);
  EXPECT_NE(only_job().foreign.find("other users may write it"), std::string::npos);
  EXPECT_TRUE(only_job().spec) << "it may be looked at and cancelled";
  EXPECT_TRUE(queue_.close()) << "and does not keep the machines";
  ASSERT_EQ(::chmod(spec.c_str(), 0600), 0);
  EXPECT_EQ(only_job().foreign, "");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  ASSERT_EQ(::chown(spec.c_str(), 4711, 4711), 0);
  EXPECT_NE(only_job().foreign.find("it belongs to 4711"), std::string::npos);
}

unsigned rights_of(const Path& folder) { return static_cast<unsigned>(std::filesystem::status(folder).permissions()); }

TEST_F(JobQueueTest, IsAFolderInWhichOthersDoNotWrite) {
  const mode_t before = ::umask(0);
  queue_.submit(spec_of_test(), false);
  ::umask(before);
  EXPECT_EQ(rights_of(queue_.folder()), 0755u);
  EXPECT_EQ(rights_of(queue_.folder() / "0001"), 0755u);
}

// Each user of a shared folder has clusters there, and renames none of another.
TEST_F(JobQueueTest, OfAClusterIsInAFolderLikeTmpWhereOthersWriteToo) {
  const Path shared = folder_ / "shared", own = folder_ / "own";
  for (const Path& folder : {shared, own}) std::filesystem::create_directory(folder);
  ASSERT_EQ(::chmod(shared.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(own.c_str(), 0755), 0);
  for (const Path& folder : {shared, own}) make_queue_folder(queue_of_cluster(folder.string(), "lab"));
  EXPECT_EQ(rights_of(shared / "dtrain-jobs"), 01777u);
  EXPECT_EQ(rights_of(own / "dtrain-jobs"), 0755u);
  EXPECT_EQ(rights_of(shared / "dtrain-jobs/lab"), 0755u);
  ASSERT_EQ(::chmod((own / "dtrain-jobs").c_str(), 0775), 0);  // as earlier versions made it with umask 002
  make_queue_folder(queue_of_cluster(own.string(), "other"));
  EXPECT_EQ(rights_of(own / "dtrain-jobs"), 01775u);
}

TEST_F(JobQueueTest, SaysWhoseFolderKeepsAClusterOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  std::filesystem::create_directory(folder_ / "dtrain-jobs");
  ASSERT_EQ(::setresuid(4711, 4711, 0), 0);  // access(2) asks for the real user
  const std::string message = message_of([&] { make_queue_folder(folder_ / "dtrain-jobs/lab"); });
  ASSERT_EQ(::setresuid(0, 0, 0), 0);
  EXPECT_NE(message.find("it belongs to root"), std::string::npos) << message;
}

TEST_F(JobQueueTest, CancelsOnceAndRefusesWhatIsOverOrUnknown) {
  queue_.submit(spec_of_test(), false);
  EXPECT_TRUE(queue_.cancel(1, false));
  EXPECT_FALSE(queue_.cancel(1, false));
  EXPECT_TRUE(only_job().cancelled);
  EXPECT_TRUE(queue_.cancel(1, true));  // it is in more of a hurry
  EXPECT_TRUE(only_job().cancelled_now);
  JobQueue::write(only_job(), {.state = JobState::done});
  EXPECT_EQ(message_of([&] { queue_.cancel(1, false); }), "job 1 is over: done");
  EXPECT_NE(message_of([&] { queue_.cancel(2, false); }).find("no job 2"), std::string::npos);
}

TEST(JobQueue, IsNamedInCommandsAsItIsChosen) {
  EXPECT_EQ(JobQueue("/q").command("jobs list"), "dtrain jobs list --job-queue /q");
  EXPECT_EQ(JobQueue("/my queue").command("jobs list"), "dtrain jobs list --job-queue '/my queue'");
  EXPECT_EQ(JobQueue("/efs/q", "demo").command("jobs show 7"), "dtrain jobs show 7 --cluster demo");
}

TEST_F(JobQueueTest, NamesItselfWhereThereIsNoSuchJob) {
  queue_.submit(spec_of_test(), false);
  try {
    queue_.at(9);
    FAIL() << "it must throw";
  } catch (const UsageError& error) {
    EXPECT_NE(error.hint().find(queue_.command("jobs list")), std::string::npos) << error.hint();
  }
}

TEST_F(JobQueueTest, HasOneRunner) {
  EXPECT_FALSE(queue_.has_runner());
  const auto lock = queue_.take_runner_lock();
  EXPECT_TRUE(lock);
  EXPECT_FALSE(JobQueue(queue_.folder()).take_runner_lock());
  EXPECT_TRUE(queue_.has_runner());
}

TEST_F(JobQueueTest, RefusesJobsOnceItIsClosed) {
  queue_.submit(spec_of_test(), true);
  EXPECT_TRUE(queue_.goes_down());
  EXPECT_FALSE(queue_.close());  // a job waits
  JobQueue::write(only_job(), {.state = JobState::done});
  EXPECT_TRUE(queue_.close());
  EXPECT_TRUE(queue_.is_closed_here());
  EXPECT_NE(message_of([&] { queue_.submit(spec_of_test(), false); }).find("is going down"), std::string::npos);
  EXPECT_EQ(queue_.read().size(), 1u);
}

TEST_F(JobQueueTest, OpensAgainOnAMachineThatStartsLater) {
  queue_.submit(spec_of_test(), true);
  JobQueue::write(only_job(), {.state = JobState::done});
  queue_.close();
  write_file_atomic(queue_.folder() / "closed", "another boot\n");
  EXPECT_FALSE(queue_.is_closed_here());
  queue_.open();
  EXPECT_FALSE(queue_.goes_down());
  EXPECT_EQ(queue_.submit(spec_of_test(), false), 2);
}

// A limit on the size of files fails writes as a full disk does.
TEST_F(JobQueueTest, LeavesNothingOfAJobThatTheDiskDoesNotTake) {
  queue_.submit(spec_of_test(), false);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  ::setrlimit(RLIMIT_FSIZE, &none);
  const std::string message = message_of([&] { queue_.submit(spec_of_test(), true); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(message.find("spec.json"), std::string::npos) << message;
  EXPECT_EQ(queue_.read().size(), 1u);
  EXPECT_FALSE(queue_.goes_down());
  for (const auto& entry : std::filesystem::directory_iterator(queue_.folder())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".new")) << entry.path();
  }
  EXPECT_EQ(queue_.submit(spec_of_test(), false), 2);
}

TEST_F(JobQueueTest, RemovesWhatAnInterruptionLeft) {
  queue_.submit(spec_of_test(), false);
  JobQueue::write(only_job(), {.state = JobState::done});
  for (const bool forgets : {false, true}) {
    const Path left[] = {queue_.folder() / ".new-4711", queue_.folder() / ".gone-7", queue_.folder() / ".down-4711"};
    for (const Path& folder : left) make_folder(folder / "content");
    forgets ? queue_.forget(1) : void(queue_.submit(spec_of_test(), false));
    for (const Path& folder : left) EXPECT_FALSE(std::filesystem::exists(folder)) << folder << forgets;
  }
  EXPECT_EQ(only_job().number, 2);
}

// Without file descriptors no folder can be listed, as when a file server does not answer.
TEST_F(JobQueueTest, IsNotEmptyWhereItsFolderDoesNotAnswer) {
  queue_.submit(spec_of_test(), false);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  ::setrlimit(RLIMIT_NOFILE, &none);
  std::size_t seen = 0;
  const std::string message = message_of([&] { seen = JobQueue(queue_.folder()).read().size(); });
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_NE(message.find("cannot be listed"), std::string::npos) << message << seen;
  EXPECT_EQ(queue_.read().size(), 1u);
  EXPECT_TRUE(JobQueue(folder_ / "none").read().empty());
}

TEST_F(JobQueueTest, FindsTheOpenJobOfAJobFolder) {
  EXPECT_FALSE(open_job_of({folder_ / "none"}));
  queue_.submit(spec_of_test(), false);
  const Path path = queue_.at(1).folder;
  const auto found = open_job_of({path / ""});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 1);
  EXPECT_TRUE(std::filesystem::equivalent(found->queue.folder(), queue_.folder()));
  JobQueue::write(queue_.at(1), {.state = JobState::stopped});
  EXPECT_FALSE(open_job_of({path})) << "it is over";
  make_folder(folder_ / "0002");
  EXPECT_FALSE(open_job_of({folder_ / "0002"})) << "a folder of no queue";
}

TEST_F(JobQueueTest, FindsTheOpenJobOfAJobFolderThatTheUserChose) {
  ManagedSpec spec = spec_of_test();
  spec.job_folder = folder_ / "chosen";
  queue_.submit(spec, false);
  EXPECT_FALSE(open_job_of({spec.job_folder}));
  name_queued_job(queue_.at(1));
  const auto found = open_job_of({spec.job_folder});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 1);
  EXPECT_FALSE(open_job_of({queue_.at(1).folder})) << "its job folder is another one";
  queue_.submit(spec_of_test(), false);
  write_file_atomic(JobFolder{spec.job_folder}.queued_job(), queue_.at(2).folder.string() + "\n");
  EXPECT_FALSE(open_job_of({spec.job_folder})) << "job 2 does not run there";
}

// The order in which names get their place in the folder. "." where the folder itself is opened, as to sync it.
std::vector<std::string> names_moved_to(int watch) {
  std::vector<std::string> names;
  alignas(inotify_event) char buffer[16 << 10];
  const ssize_t got = ::read(watch, buffer, sizeof buffer);
  for (ssize_t at = 0; at < got;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
    const std::string name = event->len == 0 ? "." : event->name;
    const bool is_kept = event->len == 0 ? !names.empty() && names.back() != "." : !name.starts_with('.');
    if (is_kept && (event->len == 0 || (event->mask & IN_MOVED_TO) != 0)) names.push_back(name);
    at += static_cast<ssize_t>(sizeof *event + event->len);
  }
  return names;
}

TEST_F(JobQueueTest, HasTheJobBeforeItsMachinesAreToEnd) {
  make_folder(queue_.folder());
  const FileDescriptor watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_NE(::inotify_add_watch(watch.get(), queue_.folder().c_str(), IN_MOVED_TO | IN_OPEN), -1);
  queue_.submit(spec_of_test(), true);
  EXPECT_EQ(names_moved_to(watch.get()),
            (std::vector<std::string>{"last-number", ".", "0001", ".", "down-when-done", "."}));
}

TEST(ManagedJob, KeepsVariablesOfTheWorkAndNoKeys) {
  EXPECT_EQ(kept_environment({"PATH=/bin", "AWS_SECRET_ACCESS_KEY=s", "OMP_NUM_THREADS=2", "DTRAIN_LR=1", "SSH_TTY=x"}),
            (std::vector<std::string>{"PATH=/bin", "OMP_NUM_THREADS=2", "DTRAIN_LR=1"}));
}

TEST(ManagedJob, ShowsTheCommandAsAShellTakesIt) {
  EXPECT_EQ(command_text({.words = {"train", "--lr", "0.1", "two words", "it's", ""}}),
            "train --lr 0.1 'two words' 'it'\\''s' ''");
}

}  // namespace
}  // namespace dtrain::job
