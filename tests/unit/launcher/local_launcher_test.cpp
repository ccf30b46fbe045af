#include <gtest/gtest.h>
#include <signal.h>

#include <dtrain/base/process.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/launcher/local_launcher.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::launcher {
namespace {

const std::vector<std::string> kSleep = {"/bin/sleep", "1000"};

class LocalLauncherTest : public testing::Test {
 protected:
  static void start(LocalLauncher& launcher, const std::string& host, const Path& folder) {
    const elastic::AgentOrder order{"127.0.0.1", {}, 1, "token", host, folder.string(), host + "-tree", 1};
    launcher.start({.name = host, .user = "", .host = host}, order, nullptr);
  }
  // A process that an agent of an earlier coordinator left behind.
  static pid_t leave_behind(const std::string& tree) {
    Spawn child = spawn_of(kSleep);
    child.environment = {"DTRAIN_TREE=" + tree + ".7."};
    return spawn(child);
  }

  const TemporaryFolder folder_;
};

TEST_F(LocalLauncherTest, AgentsOutliveItWhereTheJobGoesOn) {
  std::vector<pid_t> agents;
  {
    LocalLauncher launcher({.command = kSleep, .job_goes_on = [] { return true; }});
    start(launcher, "w1", folder_.path());
    do {  // the process that starts the agent may still be there
      agents = descendants_of(::getpid());
    } while (agents.size() > 1);
  }
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_FALSE(has_ended(agents[0]));
  ::kill(agents[0], SIGKILL);
  wait_for_end(agents[0]);
}

TEST_F(LocalLauncherTest, AgentsEndWithAJobThatIsOver) {
  {
    LocalLauncher launcher({.command = kSleep, .job_goes_on = [] { return false; }});
    start(launcher, "w1", folder_.path());
  }
  EXPECT_TRUE(descendants_of(::getpid()).empty());
}

TEST_F(LocalLauncherTest, WhatAnInheritedAgentLeftEndsWhenAnotherTakesItsPlace) {
  const pid_t first = leave_behind("first"), second = leave_behind("second");
  {
    LocalLauncher launcher({.command = kSleep, .inherited = {{"w1", "first", {}}, {"w2", "second", {}}}});
    start(launcher, "w1", folder_.path());
    EXPECT_EQ(wait_for_end(first).signal, SIGKILL);
    EXPECT_FALSE(has_ended(second));
  }
  EXPECT_EQ(wait_for_end(second).signal, SIGKILL) << "at the latest with the launcher";
}

}  // namespace
}  // namespace dtrain::launcher
