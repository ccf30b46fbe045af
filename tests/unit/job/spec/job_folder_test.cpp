#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/own_files.hpp>

#include "common/no_file_locks.hpp"
#include "data/temporary_folder.hpp"
#include "spec/job_client.hpp"
#include "spec/job_folder.hpp"
#include "spec/process_facts.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;

class JobFolderTest : public ::testing::Test {
 protected:
  JobFolderTest() : folder_{std::filesystem::temp_directory_path() / ("dtrain-job-" + std::to_string(::getpid()))} {
    make_folder(folder_.path);
  }
  ~JobFolderTest() override { std::filesystem::remove_all(folder_.path); }
  JobFolder folder_;
};

TEST_F(JobFolderTest, WithoutACoordinatorThereIsNone) { EXPECT_FALSE(read_coordinator(folder_)); }

TEST_F(JobFolderTest, ACoordinatorIsFoundAgain) {
  write_coordinator(folder_, {.pid = 7, .host = "h", .addresses = {"127.0.0.1", "10.0.0.1"}, .port = 9, .token = "t"});
  const auto file = read_coordinator(folder_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->pid, 7);
  EXPECT_EQ(file->addresses, (std::vector<std::string>{"127.0.0.1", "10.0.0.1"}));
  EXPECT_EQ(file->port, 9);
  EXPECT_EQ(file->token, "t");
  EXPECT_FALSE(file->over());
}

TEST(JobFolder, IsNamedInCommandsAsAShellTakesIt) {
  EXPECT_EQ(JobFolder{"/efs/job"}.command("stop"), "dtrain stop --job-dir /efs/job");
  EXPECT_EQ(JobFolder{"my job's"}.command("hosts list"), "dtrain hosts list --job-dir 'my job'\\''s'");
}

TEST_F(JobFolderTest, CommandsOfRefusalsCanBePasted) {
  const JobFolder spaced{folder_.path / "my job"};
  make_folder(spaced.path);
  write_coordinator(spaced, {.ended = "done"});
  try {
    ask_coordinator(spaced, Json::object({{"ask", "list"}}));
    FAIL() << "it must throw";
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("--job-dir '" + spaced.path.string() + "'"), std::string::npos) << error.hint();
  }
}

TEST_F(JobFolderTest, SaysWhereTheJobWasStarted) {
  write_coordinator(folder_, {.token = "t"});
  EXPECT_TRUE(read_coordinator(folder_).value().started_in.empty());
  write_coordinator(folder_, {.started_in = "/data/runs", .token = "t"});
  EXPECT_EQ(read_coordinator(folder_).value().started_in, "/data/runs");
}

TEST_F(JobFolderTest, SaysHowLongTheEndOfTheJobMayTake) {
  EXPECT_EQ(CoordinatorFile{}.stop_timeout, elastic::Policy{}.stop_timeout);
  write_coordinator(folder_, {.token = "t", .stop_timeout = std::chrono::seconds(700)});
  EXPECT_EQ(read_coordinator(folder_).value().stop_timeout, std::chrono::seconds(700));
}

TEST_F(JobFolderTest, SaysWhetherTheCoordinatorWritesALog) {
  for (const bool has_log : {false, true}) {
    write_coordinator(folder_, {.has_log = has_log, .ended = "done"});
    EXPECT_EQ(read_coordinator(folder_).value().has_log, has_log);
  }
}

TEST_F(JobFolderTest, WhatHostsGetIsToldToWhoeverStartsThem) {
  write_coordinator(folder_, {.sync = {.to = "/srv/copy", .from = "/srv/mine", .shared = true}, .token = "t"});
  const SyncedFolder sync = read_coordinator(folder_).value().sync;
  EXPECT_EQ(sync.to, "/srv/copy");
  EXPECT_EQ(sync.from, "/srv/mine");
  EXPECT_TRUE(sync.shared);
}

TEST_F(JobFolderTest, OnlyTheOwnerMayReadTheToken) {
  const auto old_mask = ::umask(0);
  write_coordinator(folder_, {.token = "t"});
  ::umask(old_mask);
  struct stat status {};
  ASSERT_EQ(::stat(folder_.coordinator().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

// What another user's coordinator asks for is not done with this user's keys.
TEST_F(JobFolderTest, TheFileOfAnotherUserIsNoOrder) {
  EXPECT_FALSE(read_own_coordinator(folder_));
  write_coordinator(folder_, {.host = "h1", .token = "t"});
  EXPECT_EQ(read_own_coordinator(folder_).value().host, "h1");
  ASSERT_EQ(::chmod(folder_.coordinator().c_str(), 0660), 0);
  EXPECT_THROW((void)read_own_coordinator(folder_), ForeignFile);
  EXPECT_THROW(ask_own_coordinator(folder_, Json::object({})), ForeignFile);
  EXPECT_EQ(read_coordinator(folder_).value().host, "h1") << "it may be looked at";
}

TEST_F(JobFolderTest, ADamagedFileIsADataError) {
  write_file_atomic(folder_.coordinator(), "{\"pid\": 1}");
  EXPECT_THROW(read_coordinator(folder_), DataError);
}

TEST_F(JobFolderTest, OneCoordinatesAtATime) {
  EXPECT_FALSE(is_coordinated(folder_));
  {
    const FileLock lock = coordinate(folder_);
    EXPECT_TRUE(is_coordinated(folder_));
    write_coordinator(folder_, {.pid = 4711, .host = "h1", .token = "t"});
    const std::string folder = folder_.path.string();
    data::expect_error<Error>([&] { coordinate(folder_); },
                              folder +
                                  ": a job runs there already (process 4711 on h1) | use another --job-dir; "
                                  "`dtrain hosts list --job-dir " +
                                  folder +
                                  "` shows its hosts, and `dtrain "
                                  "stop --job-dir " +
                                  folder + "` ends it");
  }
  EXPECT_FALSE(is_coordinated(folder_));
}

// Looks at a lock again and again, as `dtrain stop` does, and holds it for 20 ms each time.
class SlowLook {
 public:
  SlowLook(Path lock, int how) : lock_(std::move(lock)), how_(how) {}
  ~SlowLook() {
    ends_ = true;
    looks_.join();
  }
  SlowLook(const SlowLook&) = delete;
  void await_next() const {
    const int before = count_;
    while (count_ == before) std::this_thread::sleep_for(1ms);
  }

 private:
  void look() {
    while (!ends_) {
      {
        const FileDescriptor file(::open(lock_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
        while (::flock(file.get(), how_ | LOCK_NB) != 0) std::this_thread::sleep_for(1ms);
        ++count_;
        std::this_thread::sleep_for(20ms);
      }
      std::this_thread::sleep_for(80ms);
    }
  }

  const Path lock_;
  const int how_;
  std::atomic<int> count_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread looks_{[this] { look(); }};
};

TEST_F(JobFolderTest, ALookAtTheLockIsNoJob) {
  const SlowLook stop(folder_.lock(), LOCK_SH);
  for (int i = 0; i < 3; ++i) {
    stop.await_next();
    EXPECT_NO_THROW(coordinate(folder_));
  }
}

TEST_F(JobFolderTest, ALookAtTheAgentsIsNoAgent) {
  const SlowLook stop(folder_.agents_lock(), LOCK_EX);
  for (int i = 0; i < 2; ++i) {
    stop.await_next();
    EXPECT_FALSE(has_agents(folder_));
    stop.await_next();
    EXPECT_NO_THROW(FileLock::share(folder_.agents_lock()));
  }
}

TEST_F(JobFolderTest, ALookThatDoesNotEndIsNotAwaitedForEver) {
  const auto stopped = FileLock::take(folder_.agents_lock());
  const std::string lock = folder_.agents_lock().string();
  data::expect_error<Error>(
      [&] { FileLock::share(lock, 50ms); },
      lock + ": another process has held this lock for 50 ms | end that process, which `fuser " + lock + "` names");
}

TEST_F(JobFolderTest, AFileSystemWithoutLocksIsNoOtherJob) {
  const bool refused = without_file_locks([&] {
    const std::string reason =
        ": cannot lock: No locks available | choose a folder on a file system that is mounted "
        "with locks: --job-dir";
    data::expect_error<Error>([&] { coordinate(folder_); }, folder_.lock().string() + reason);
    data::expect_error<Error>([&] { FileLock::share(folder_.agents_lock()); }, folder_.agents_lock().string() + reason);
  });
  if (!refused) GTEST_SKIP() << "this kernel filters no system calls";
}

TEST_F(JobFolderTest, ARecordOfAnEndHasItsExitCode) {
  write_coordinator(folder_, {.launcher = config::Launcher::mpi, .ended = "stopped", .exit_code = ExitCode::resumable});
  const auto file = read_coordinator(folder_).value();
  EXPECT_EQ(file.launcher, config::Launcher::mpi);
  EXPECT_EQ(file.exit_code, ExitCode::resumable);
  EXPECT_FALSE(file.program_failed);
  write_coordinator(folder_, {.ended = "failed", .exit_code = ExitCode::resumable, .program_failed = true});
  EXPECT_TRUE(read_coordinator(folder_).value().program_failed);
}

TEST_F(JobFolderTest, OnThisMachineASuccessorComesOnlyFromAnAgentThatLives) {
  const CoordinatorFile here{.host = host_name(), .launcher = config::Launcher::local, .survives = true};
  EXPECT_FALSE(may_have_successor(folder_, here));
  {
    const FileLock one = FileLock::share(folder_.agents_lock()), other = FileLock::share(folder_.agents_lock());
    EXPECT_TRUE(may_have_successor(folder_, here));
  }
  EXPECT_FALSE(may_have_successor(folder_, here));
  CoordinatorFile elsewhere = here;
  elsewhere.host = "another";
  EXPECT_TRUE(may_have_successor(folder_, elsewhere));
}

TEST_F(JobFolderTest, AgentsOutliveTheCoordinatorOfAJobThatHasNotEnded) {
  EXPECT_FALSE(has_agents_of_unfinished_job(folder_));
  const FileLock agent = FileLock::share(folder_.agents_lock());
  EXPECT_FALSE(has_agents_of_unfinished_job(folder_)) << "no job is recorded";
  write_coordinator(folder_, {.token = "t", .survives = true});
  EXPECT_TRUE(has_agents_of_unfinished_job(folder_));
  write_coordinator(folder_, {.survives = true, .ended = "done"});
  EXPECT_FALSE(has_agents_of_unfinished_job(folder_));
}

TEST(LockHolders, AreThoseOfTheFileInTheKernelsTable) {
  const std::string table =
      "1: FLOCK  ADVISORY  READ 4711 08:01:123456 0 EOF\n"
      "1: -> FLOCK  ADVISORY  WRITE 99 08:01:123456 0 EOF\n"
      "2: POSIX  ADVISORY  WRITE 12 08:01:123456 0 EOF\n"
      "3: FLOCK  ADVISORY  READ 4712 08:01:123456 0 EOF\n"
      "4: FLOCK  ADVISORY  READ 0 08:01:123456 0 EOF\n"
      "5: FLOCK  ADVISORY  READ 4713 08:01:23456 0 EOF\n";
  EXPECT_EQ(holders_in(table, 123456), (std::vector<std::int64_t>{4711, 4712}));
  EXPECT_EQ(holders_in("", 1), std::vector<std::int64_t>());
}

}  // namespace
}  // namespace dtrain::job
