#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include <dtrain/base/daemon.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain {
namespace {

TEST(ProcessEnd, IsToldInWords) {
  EXPECT_EQ(describe_end(3, 0), "ended with exit code 3");
  EXPECT_EQ(describe_end(0, SIGKILL), "was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(describe_end(0, 35), "was killed by signal 35");  // a real-time signal
}

TEST(ProcessEnd, AChildIsWaitedFor) {
  const pid_t exits = fork_process();
  if (exits == 0) ::_exit(7);
  const ProcessEnd exited = wait_for_end(exits);
  EXPECT_EQ(exited.code, 7);
  EXPECT_EQ(exited.shell_code(), 7);
  EXPECT_FALSE(exited.ok());
  const pid_t dies = fork_process();
  if (dies == 0) ::raise(SIGKILL);
  const ProcessEnd killed = wait_for_end(dies);
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_EQ(killed.shell_code(), 128 + SIGKILL);
  EXPECT_TRUE(wait_for_end(dies).ok()) << "it was reaped before";
}

TEST(ProcessEnd, SignalsAreFoundByAnySpellingOfTheirName) {
  EXPECT_EQ(signal_number("TERM"), SIGTERM);
  EXPECT_EQ(signal_number("sigusr1"), SIGUSR1);
  EXPECT_EQ(signal_number("SIG"), std::nullopt);
  EXPECT_EQ(signal_number("NONE"), std::nullopt);
}

}  // namespace
}  // namespace dtrain
