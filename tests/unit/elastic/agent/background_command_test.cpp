#include "elastic/agent/background_command.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <thread>

#include <dtrain/base/error.hpp>

#include "elastic/temporary_folder.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

// From now on a loop that this thread asks to watch a descriptor has none left for its copy. False: this kernel filters
// no system calls.
bool refuse_to_watch() {
  const auto load = [](std::size_t place) -> sock_filter {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(place));
  };
  std::array<sock_filter, 8> program{{
      load(offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
      load(offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_DUPFD_CLOEXEC, 0, 3),
      load(offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

class BackgroundCommandTest : public testing::Test {
 protected:
  BackgroundCommand::Options endless() const {
    return {.spawn = {.executable = "/bin/sleep", .arguments = {"sleep", "600"}}, .mark = mark_, .deadline = 600s};
  }

  const TemporaryFolder folder_;
  const std::string mark_ = "DTRAIN_TEST_MARK=background " + std::to_string(::getpid());
};

TEST_F(BackgroundCommandTest, WhatCannotBeWatchedIsNotStarted) {
  net::Loop loop;
  const auto command = std::make_shared<BackgroundCommand>(loop, folder_ / "log");
  bool refused = false;
  std::thread([&] {  // a command ends with the thread that started it
    refused = refuse_to_watch();
    if (!refused) return;
    EXPECT_THROW(command->start(endless(), [](const auto&) {}), Error);
    EXPECT_TRUE(processes_marked(mark_).empty());
  })
      .join();
  if (!refused) GTEST_SKIP() << "this kernel filters no system calls";
}

TEST_F(BackgroundCommandTest, DoesNotOutliveItsLoop) {
  pid_t process = 0;
  {
    net::Loop loop;
    const auto command = std::make_shared<BackgroundCommand>(loop, folder_ / "log");
    command->start(endless(), [](const auto&) { ADD_FAILURE() << "the loop never ran"; });
    process = command->id();
    EXPECT_FALSE(has_ended(process));
  }
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 1000 && ended == 0; ++i) {
    ended = ::waitpid(process, &status, WNOHANG);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(ended, process);
  for (const pid_t left : processes_marked(mark_)) kill_tree(left);
}

}  // namespace
}  // namespace dtrain::elastic
