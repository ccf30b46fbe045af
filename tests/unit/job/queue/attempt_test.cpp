#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "common/temporary_folder.hpp"
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

}  // namespace
}  // namespace dtrain::job
