#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include <dtrain/base/text.hpp>
#include <dtrain/elastic/log_file.hpp>

#include "elastic/temporary_folder.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

TEST(LogFile, EveryLineHasItsTimeBeforeIt) {
  const TemporaryFolder folder;
  LogFile log(folder / "logs/w1.0.log");
  log.append("one\ntwo\n");
  const std::vector<std::string> lines = split(read_file(folder / "logs/w1.0.log"), '\n');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].size(), std::string("2026-01-31T23:59:59.123456Z one").size());
  EXPECT_TRUE(lines[1].ends_with("Z two")) << lines[1];
}

TEST(LogFile, ANoteIsToldFromLinesOfAProgram) {
  const TemporaryFolder folder;
  LogFile log(folder / "log");
  log.append_note("generation 1");
  log.append("\tgeneration 2\n");
  const std::vector<std::string> lines = split(read_file(folder / "log"), '\n');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].ends_with("Z\tgeneration 1")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with("Z \tgeneration 2")) << lines[1];
}

TEST(LogFile, ALargeOneIsKeptUnderANumberAndTheOldestGoes) {
  const TemporaryFolder folder;
  LogFile log(folder / "log", 100);
  for (int i = 0; i < 30; ++i) log.append("line " + std::to_string(i) + "\n");
  EXPECT_TRUE(std::filesystem::exists((folder / "log").string() + ".4"));
  EXPECT_FALSE(std::filesystem::exists((folder / "log").string() + ".5"));
  EXPECT_NE(read_file((folder / "log").string() + ".1").find("line 29"), std::string::npos);
}

TEST(LogFile, WhatSomebodyElseRenamedIsBegunAnew) {
  const TemporaryFolder folder;
  LogFile log(folder / "log");
  log.append("old\n");
  std::filesystem::rename(folder / "log", folder / "log.old");
  std::this_thread::sleep_for(1100ms);
  log.append("new\n");
  EXPECT_NE(read_file(folder / "log").find("new"), std::string::npos);
}

TEST(LogFile, ATornLineOfAnEarlierProcessIsCompleted) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "log", "half");
  LogFile log(folder / "log");
  log.append("whole\n");
  EXPECT_TRUE(read_file(folder / "log").starts_with("half\n2"));
}

// The limit of a process's files stands for a full disk: writes stop within a line in the same way.
TEST(LogFile, AFullDiskCostsLinesAndSaysHowMany) {
  const TemporaryFolder folder;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  LogFile log(folder / "log");
  const rlimit small{50, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  for (int i = 0; i < 3; ++i) log.append("a line\n");
  ::setrlimit(RLIMIT_FSIZE, &before);
  log.append("after\n");
  const std::vector<std::string> lines = split(read_file(folder / "log"), '\n');
  ASSERT_EQ(lines.size(), 5u) << read_file(folder / "log");
  EXPECT_TRUE(lines[2].ends_with("dtrain: 2 lines could not be written here")) << lines[2];
  EXPECT_TRUE(lines[3].ends_with("Z after"));
}

}  // namespace
}  // namespace dtrain::elastic
