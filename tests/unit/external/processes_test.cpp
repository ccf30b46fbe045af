#include "processes.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include <dtrain/base/process.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::external {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class ProcessesTest : public testing::Test {
 protected:
  // Starts `sh -c SCRIPT`, whose folder is $FOLDER, and returns once the script has made $FOLDER/ready.
  std::unique_ptr<Processes> start(const std::string& script) {
    RankProcess process{.command = {"sh", "-c", script}, .environment = own_environment()};
    process.environment.push_back("FOLDER=" + folder_.path().string());
    process.environment.push_back(mark());
    auto processes = std::make_unique<Processes>(std::vector{process}, folder_.path(), "test", mark());
    for (const auto end = Clock::now() + 30s; !has("ready") && Clock::now() < end;) std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(has("ready"));
    return processes;
  }
  std::string mark() const { return "DTRAIN_PROGRAM=" + folder_.path().filename().string(); }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  TemporaryFolder folder_;
};

// A shell that ends with the signal, and under it a program that does `answer` on SIGTERM.
std::string under_a_shell(const std::string& answer) {
  return "sh -c 'trap \"" + answer + "\" TERM; touch $FOLDER/ready; while :; do sleep 0.05; done'; true";
}

TEST_F(ProcessesTest, AProgramUnderAShellHasItsGrace) {
  const auto processes = start(under_a_shell("sleep 1; touch $FOLDER/saved; exit"));
  const auto begin = Clock::now();
  processes->stop(SIGTERM, 60s);
  EXPECT_TRUE(has("saved"));
  EXPECT_TRUE(processes->all_done());
  EXPECT_LT(Clock::now() - begin, 50s) << "the whole grace was waited for";
}

TEST_F(ProcessesTest, AWaitWhoseTimeIsOverEndsAtOnce) {
  const auto processes = start("touch $FOLDER/ready; exec sleep 30");
  const auto begin = Clock::now();
  EXPECT_FALSE(processes->watch(-1ms));
  EXPECT_LT(Clock::now() - begin, 20s);
  processes->stop(SIGKILL, 1s);
}

TEST_F(ProcessesTest, AProgramUnderAShellIsKilledAfterItsGrace) {
  const auto processes = start(under_a_shell(":"));
  const auto begin = Clock::now();
  processes->stop(SIGTERM, 500ms);
  EXPECT_GE(Clock::now() - begin, 500ms);
  EXPECT_TRUE(processes->all_done());
  for (const auto end = Clock::now() + 30s; !processes_marked(mark()).empty() && Clock::now() < end;) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_TRUE(processes_marked(mark()).empty());
}

// With `exec > >(tee FILE)` the shell ends before tee has written the last lines.
TEST_F(ProcessesTest, WhatAProgramLeavesMayWriteTheRestOfItsOutput) {
  const auto processes = start("(sleep 0.1; touch $FOLDER/rest) & touch $FOLDER/ready");
  for (const auto end = Clock::now() + 30s; !processes->all_done() && Clock::now() < end;) {
    EXPECT_FALSE(processes->watch(20ms).has_value());
  }
  EXPECT_TRUE(has("rest"));
}

TEST_F(ProcessesTest, AFailureIsReportedWhileWhatTheProgramLeftStillRuns) {
  const auto processes = start("sleep 1000 & touch $FOLDER/ready; exit 3");
  std::optional<Processes::Failure> failure;
  for (const auto end = Clock::now() + 30s; !failure && Clock::now() < end;) failure = processes->watch(20ms);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->end.code, 3);
}

// Orphans of a program become children of a worker's process.
class OrphansTest : public ProcessesTest {
 protected:
  OrphansTest() { adopt_orphans(); }
  ~OrphansTest() override { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
};

TEST_F(OrphansTest, AreReapedWhileTheProgramRuns) {
  const auto processes = start(
      "for i in 1 2 3 4 5; do sh -c 'sleep 0.05 & echo $! >>$FOLDER/orphans'; done; touch $FOLDER/ready; "
      "exec sleep 1000");
  std::vector<pid_t> left;
  std::ifstream orphans(folder_ / "orphans");
  for (pid_t orphan = 0; orphans >> orphan;) left.push_back(orphan);
  EXPECT_EQ(left.size(), 5u);
  for (const auto end = Clock::now() + 30s; !left.empty() && Clock::now() < end;) {
    EXPECT_FALSE(processes->watch(20ms).has_value());
    std::erase_if(left, [](pid_t orphan) { return ::kill(orphan, 0) != 0; });  // a zombie can still be signalled
  }
  EXPECT_TRUE(left.empty()) << left.size() << " were not reaped";
  EXPECT_FALSE(processes->all_done());
  processes->stop(SIGKILL, 1s);
}

TEST_F(ProcessesTest, WhatAProgramLeavesEndsWithItWhereNothingStopsIt) {
  const auto processes = start("sleep 1000 & touch $FOLDER/ready");
  for (const auto end = Clock::now() + 30s; !processes->all_done() && Clock::now() < end;) {
    EXPECT_FALSE(processes->watch(50ms).has_value());
  }
  const auto begin = Clock::now();
  processes->stop(SIGTERM, 60s);
  EXPECT_LT(Clock::now() - begin, 50s);
}

}  // namespace
}  // namespace dtrain::external
