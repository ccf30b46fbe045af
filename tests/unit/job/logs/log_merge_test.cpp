#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/admission_check.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/elastic/log_file.hpp>

#include "logs/log_merge.hpp"
#include "logs/rank_line.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;

std::string at(int second, const std::string& line) {
  return "2026-01-31T23:59:" + std::string(second < 10 ? "0" : "") + std::to_string(second) + ".000000Z " + line + "\n";
}

std::string note_at(int second, const std::string& line) {
  std::string text = at(second, line);
  text[text.find(' ')] = elastic::LogFile::kBeforeNote;
  return text;
}

class LogMergeTest : public testing::Test {
 protected:
  LogMergeTest() : folder_(std::filesystem::temp_directory_path() / ("dtrain-logs-" + std::to_string(::getpid()))) {
    make_folder(folder_);
  }
  ~LogMergeTest() override { std::filesystem::remove_all(folder_); }

  void append(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::app | std::ios::binary) << text;
  }
  // "w1.0:one w2.0:two"
  static std::string take(LogMerge& merge) {
    std::string text;
    merge.poll([&](const LogSource& line) {
      text += (text.empty() ? "" : " ") + line.name() + ":" + std::string(line.line());
    });
    return text;
  }

  const Path folder_;
};

TEST_F(LogMergeTest, LinesComeInTheOrderOfTheirTimes) {
  append("w1.0.log", at(1, "a") + at(4, "d"));
  append("w2.0.log", at(2, "b") + at(3, "c"));
  LogMerge merge(folder_, {});
  EXPECT_EQ(take(merge), "w1.0:a w2.0:b w2.0:c w1.0:d");
}

TEST_F(LogMergeTest, RanksAreKnownThatWereNotChosen) {
  append("w1.0.log", at(1, "generation 1: rank 0 of 2, x") + at(2, "generation 2: rank 3 of 4, x"));
  append("w2.0.log", at(1, "generation 1: rank 1 of 2, x"));
  append("coordinator.log", at(1, "a"));
  LogMerge merge(folder_, {.rank = 9, .host = "", .since = ""});
  EXPECT_TRUE(merge.ranks().empty());
  EXPECT_EQ(take(merge), "");
  EXPECT_EQ(merge.ranks(), (std::set<int>{0, 1, 3}));
}

TEST_F(LogMergeTest, HostsAreKnownThatWereNotChosen) {
  append("w1.0.log", at(1, "a"));
  append("prepare_w2.log", at(1, "b"));
  append("coordinator.log", at(1, "c"));
  LogMerge merge(folder_, {.rank = {}, .host = "nope", .since = ""});
  EXPECT_EQ(take(merge), "");
  EXPECT_EQ(merge.hosts(), (std::set<std::string>{"w1", "w2"}));
}

TEST_F(LogMergeTest, TheLogsOfAHostAreFoundByItsName) {
  const std::vector<std::string> hosts = {"a+b@w1", "a$b@w1", "a_b@w1", "[fe80::1%eth0]:22", "fe80::1%eth0"};
  make_folder(folder_ / "logs");
  for (const std::string& host : hosts) {
    elastic::AgentOrder order;
    order.job_folder = folder_.string();
    order.host = host;
    write_file_atomic(elastic::prepare_log(folder_, host), at(1, "prepared " + host));
    write_file_atomic(elastic::agent_log(order), at(2, "agent of " + host));
  }
  for (const std::string& host : hosts) {
    LogMerge merge(folder_ / "logs", {.rank = {}, .host = host, .since = ""});
    EXPECT_EQ(take(merge), fmt::format("prepare_{0}:prepared {0} agent_{0}:agent of {0}", host));
  }
}

TEST_F(LogMergeTest, HalfALineWaitsForTheRest) {
  append("w1.0.log", at(1, "a") + "2026-01-31T23:59:02.000000Z ha");
  LogMerge merge(folder_, {});
  EXPECT_EQ(take(merge), "w1.0:a");
  EXPECT_EQ(take(merge), "");
  append("w1.0.log", "lf\n");
  EXPECT_EQ(take(merge), "w1.0:half");
  append("w1.0.log", "last words");
  merge.end();
  EXPECT_EQ(take(merge), "w1.0:last words");
}

TEST_F(LogMergeTest, NewLogsAreFoundAndRotatedOnesFollowed) {
  append("w1.0.log.2", at(1, "oldest"));
  append("w1.0.log.1", at(2, "older"));
  append("w1.0.log", at(3, "now"));
  LogMerge merge(folder_, {});
  EXPECT_EQ(take(merge), "w1.0:oldest w1.0:older w1.0:now");
  append("w1.0.log", at(4, "before"));
  std::filesystem::rename(folder_ / "w1.0.log", folder_ / "w1.0.log.1");
  append("w1.0.log", at(5, "after"));
  append("w9.1.log", at(6, "new"));
  std::string text;
  for (int i = 0; i < 300 && text.find("after") == text.npos; ++i) {
    text += take(merge) + " ";
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_LT(text.find("before"), text.find("after")) << text;
  EXPECT_NE(text.find("w9.1:new"), text.npos) << text;
}

TEST_F(LogMergeTest, ALogThatWasCutBeginsAnew) {
  append("w1.0.log", at(1, "a long first line of it"));
  LogMerge merge(folder_, {});
  take(merge);
  std::filesystem::resize_file(folder_ / "w1.0.log", 0);
  append("w1.0.log", at(2, "b"));
  EXPECT_EQ(take(merge), "w1.0:b");
}

TEST_F(LogMergeTest, ARankIsWhatTheWorkerWasThen) {
  append("w1.0.log", at(1, "generation 1: rank 0 of 2") + at(2, "a") + at(5, "generation 2: rank 1 of 3") + at(6, "b"));
  append("w2.0.log", at(1, "generation 1: rank 1 of 2") + at(3, "c") + at(5, "generation 2: rank 0 of 3") + at(7, "d"));
  LogChoice choice;
  choice.rank = 0;
  choice.pattern = std::make_unique<LinePattern>("^[a-d]$");
  LogMerge merge(folder_, std::move(choice));
  EXPECT_EQ(take(merge), "w1.0:a w2.0:d");
}

TEST_F(LogMergeTest, AProgramCannotSayWhichRankItIs) {
  append("w1.0.log", note_at(1, rank_line(1, 0, 2)) + at(2, rank_line(3, 7, 4)) + at(3, "a") +
                         note_at(4, rank_line(2, 1, 2)) + at(5, "\t" + rank_line(4, 8, 4)) + at(6, "b"));
  append("w1.0.ps0.log", at(1, rank_line(1, 9, 10)));
  append("prepare_w1.log", at(1, rank_line(1, 9, 10)));
  LogChoice choice;
  choice.rank = 1;
  choice.pattern = std::make_unique<LinePattern>("^[a-d]$");
  LogMerge merge(folder_, std::move(choice));
  EXPECT_EQ(take(merge), "w1.0:b");
  EXPECT_EQ(merge.ranks(), (std::set<int>{0, 1}));
}

TEST_F(LogMergeTest, ServersBelongToTheHostOfTheirWorker) {
  append("w1.0.ps0.log", at(1, "a"));
  append("w1.1.scheduler0.log", at(2, "b"));
  append("w2.0.ps1.log", at(3, "c"));
  LogMerge merge(folder_, {.rank = {}, .host = "w1", .since = ""});
  std::vector<int> slots;
  merge.poll([&](const LogSource& line) { slots.push_back(line.slot()); });
  EXPECT_EQ(slots, (std::vector<int>{0, 1}));
  EXPECT_EQ(merge.hosts(), (std::set<std::string>{"w1", "w2"}));
}

TEST_F(LogMergeTest, ALineWithoutATimeIsShownWhateverTheTime) {
  append("w1.0.log", "bare\n" + at(1, "old") + at(9, "new"));
  LogMerge merge(folder_, {.rank = {}, .host = "", .since = "2026-01-31T23:59:05"});
  EXPECT_EQ(take(merge), "w1.0:bare w1.0:new");
}

TEST_F(LogMergeTest, HostTimeAndPatternChoose) {
  append("prepare_w1.log", at(1, "fetched"));
  append("w1.0.log", at(2, "error: x") + at(3, "error: y") + at(4, "fine"));
  append("w2.0.log", at(3, "error: z"));
  LogChoice choice;
  choice.host = "w1";
  choice.since = "2026-01-31T23:59:03";
  choice.pattern = std::make_unique<LinePattern>("error");
  LogMerge merge(folder_, std::move(choice));
  EXPECT_EQ(take(merge), "w1.0:error: y");
  EXPECT_THROW(LinePattern("(unclosed"), UsageError);
}

// Writers tear their lines on purpose and rotate; the reader must get each of them whole and in order.
TEST_F(LogMergeTest, ManyWritersAtOnceTearNoLine) {
  constexpr int kFiles = 64, kLines = 1'500;
  std::vector<std::jthread> writers;
  for (int first = 0; first < kFiles; first += 16) {
    writers.emplace_back([this, first] {
      for (int line = 0; line < kLines; ++line) {
        for (int file = first; file < first + 16; ++file) {
          const std::string text = at(line * 60 / kLines, "line " + std::to_string(line) + " of many");
          const std::string name = fmt::format("w{}.0.log", file);
          append(name, text.substr(0, text.size() / 2));
          append(name, text.substr(text.size() / 2));
          if (line == kLines / 2) std::filesystem::rename(folder_ / name, (folder_ / name).string() + ".1");
        }
      }
    });
  }
  LogMerge merge(folder_, {});
  std::map<std::string, int> next;
  int wrong = 0, seen = 0;
  const auto take_line = [&](const LogSource& line) {
    ++seen;
    wrong += line.line() != "line " + std::to_string(next[line.name()]++) + " of many";
  };
  for (int i = 0; i < 6'000 && seen < kFiles * kLines; ++i) {
    if (!merge.poll(take_line)) std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(seen, kFiles * kLines);
}

}  // namespace
}  // namespace dtrain::job
