#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <thread>

#include <dtrain/base/error.hpp>
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

  // An agent that writes its number; descendants of this process may be those of an earlier test.
  std::vector<std::string> numbered_agent() const {
    return {"/bin/sh", "-c", fmt::format("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", number_file_.string())};
  }
  pid_t agent() const {
    pid_t number = 0;
    while (!(std::ifstream(number_file_) >> number)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return number;
  }

  const TemporaryFolder folder_;

 private:
  const Path number_file_ = folder_.path() / "number";
};

TEST_F(LocalLauncherTest, AgentsOutliveItWhereTheJobGoesOn) {
  {
    LocalLauncher launcher({.command = numbered_agent(), .job_goes_on = [] { return true; }});
    start(launcher, "w1", folder_.path());
  }
  EXPECT_FALSE(has_ended(agent()));
  ::kill(agent(), SIGKILL);
  wait_for_end(agent());
}

TEST_F(LocalLauncherTest, AgentsEndWithAJobThatIsOver) {
  {
    LocalLauncher launcher({.command = numbered_agent(), .job_goes_on = [] { return false; }});
    start(launcher, "w1", folder_.path());
    EXPECT_FALSE(has_ended(agent()));
  }
  EXPECT_EQ(::kill(agent(), 0), -1) << "it still runs, or was not reaped";
}

TEST_F(LocalLauncherTest, AnAgentThatDoesNotStartIsNoFaultOfAnotherMachine) {
  LocalLauncher launcher({.command = {(folder_ / "missing").string()}});
  try {
    start(launcher, "w1", folder_.path());
    FAIL() << "there is no such program";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::failed);
    EXPECT_TRUE(std::string(error.what()).starts_with("its agent does not start: ")) << error.what();
  }
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
