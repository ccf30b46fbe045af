#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>

#include "agent/life_sign.hpp"
#include "agent/waiting_host.hpp"
#include "common/temporary_folder.hpp"

namespace dtrain::job {
namespace {

using launcher::WaitingHost;
using launcher::WaitingState;

// A process that SIGUSR1 ends stands for the one that waits, or for another one of the same number.
class LeaveFolderTest : public ::testing::Test {
 protected:
  LeaveFolderTest() : process_(::fork()) {
    if (process_ == 0) {
      ::signal(SIGUSR1, SIG_DFL);
      for (;;) ::pause();
    }
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  ~LeaveFolderTest() override {
    ::unsetenv("XDG_CACHE_HOME");
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  bool is_alive() const { return !process_identity(process_).empty(); }
  void show(std::int64_t pid, const std::string& process) const {
    launcher::WaitingFolder(job_.path).renew({"w1", WaitingState::in_job, pid, seconds_since_1970(), process});
  }
  void leave() const { leave_folder(job_, "w1", std::chrono::seconds(5)); }

  const TemporaryFolder folder_;
  const JobFolder job_{folder_ / "job"};
  const pid_t process_;
};

TEST_F(LeaveFolderTest, AsksTheProcessThatWaits) {
  show(process_, process_identity(process_));
  leave();
  EXPECT_FALSE(is_alive());
}

TEST_F(LeaveFolderTest, SignalsNoOtherProcessOfThatNumber) {
  const std::string own = process_identity(process_);
  for (const std::string& other : {own + "1", "another boot " + own, std::string()}) {
    show(process_, other);
    EXPECT_THROW(leave(), Error) << other;
    EXPECT_TRUE(is_alive()) << other;
  }
}

TEST_F(LeaveFolderTest, TakesNoNumberThatIsNoProcess) {
  constexpr std::int64_t kTooLarge = std::int64_t{1} << 32;
  for (const std::int64_t pid : {kTooLarge + process_, std::int64_t{0}, -std::int64_t{process_}}) {
    show(pid, process_identity(process_));
    EXPECT_THROW(leave(), Error) << pid;
    EXPECT_TRUE(is_alive()) << pid;
  }
}

}  // namespace
}  // namespace dtrain::job
