#include "process/late_children.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <dtrain/base/process.hpp>

namespace dtrain {
namespace {

bool is_reaped(pid_t child) { return ::waitpid(child, nullptr, WNOHANG) < 0 && errno == ECHILD; }

TEST(LateChildren, AreReapedOnceTheyHaveEnded) {
  const pid_t child = spawn({.executable = "/bin/sleep", .arguments = {"sleep", "300"}});
  LateChildren late;
  late.add(child);
  late.reap();
  EXPECT_FALSE(has_ended(child));
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  late.reap();
  EXPECT_TRUE(is_reaped(child));
}

TEST(LateChildren, OneThatHasEndedIsReapedAtOnce) {
  const pid_t child = spawn({.executable = "/bin/true", .arguments = {"true"}});
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  LateChildren late;
  late.add(child);
  EXPECT_TRUE(is_reaped(child));
}

}  // namespace
}  // namespace dtrain
