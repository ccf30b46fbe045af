#include "process/process_tree.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include <dtrain/base/process.hpp>

namespace dtrain {
namespace {

using Processes = std::vector<pid_t>;

pid_t waiting_child() {
  const pid_t child = ::fork();
  if (child == 0) ::alarm(600);
  while (child == 0) ::pause();
  return child;
}

// Also ends a child that nobody else has ended.
bool was_ended(pid_t child, const Processes& killed) {
  const bool is_listed = std::ranges::find(killed, child) != killed.end();
  if (!is_listed) ::kill(child, SIGKILL);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && is_listed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

// A process in the middle of execve(2) shows no environment, so that one look for a mark misses it.
TEST(KillFound, EndsWhatASingleRoundMissed) {
  const pid_t first = waiting_child(), second = waiting_child();
  const std::vector<Processes> seen{{}, {first}, {first}, {first, second}};
  std::size_t rounds = 0;
  const Processes killed = kill_found([&] { return seen[std::min(rounds++, seen.size() - 1)]; });
  EXPECT_TRUE(was_ended(first, killed));
  EXPECT_TRUE(was_ended(second, killed));
  EXPECT_EQ(rounds, seen.size() + 2) << "two rounds in a row find nothing new";
}

TEST(KillFound, EndsWhereEachRoundFindsAnotherProcess) {
  Processes children;
  const Processes killed = kill_found([&] {
    children.push_back(waiting_child());
    return children;
  });
  EXPECT_EQ(children.size(), 100u);
  for (const pid_t child : children) EXPECT_TRUE(was_ended(child, killed));
}

TEST(KillFound, SparesTheCaller) {
  EXPECT_EQ(kill_found([] { return Processes{::getpid()}; }), Processes());
}

TEST(ReapAdopted, ReapsWhatEndedAfterAKnownChild) {
  const Processes children{waiting_child(), waiting_child(), waiting_child()};
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  }
  const Processes known{children[0], children[1]};
  while (reap_adopted(known) != 0) {
  }
  EXPECT_EQ(::waitpid(children[2], nullptr, WNOHANG), -1) << "it was not reaped";
  for (const pid_t child : known) EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), child) << "it was reaped";
}

}  // namespace
}  // namespace dtrain
