#include <gtest/gtest.h>

#include <regex>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/records.hpp>

#include "common/small_files.hpp"
#include "elastic/temporary_folder.hpp"

namespace dtrain::elastic {
namespace {

using Names = std::vector<std::string>;

constexpr WallTime kTime{std::chrono::seconds(1'790'000'000) + std::chrono::nanoseconds(123'456'789)};

TEST(MemberLog, ALineIsSeqVerbHostAndNanoseconds) {
  const TemporaryFolder folder;
  MemberLog log(folder / "host_worker_log");
  log.append(true, "10.0.1.207", kTime);
  log.append(false, "10.0.1.207", kTime);
  EXPECT_EQ(read_file(folder / "host_worker_log"),
            "0 ADDED 10.0.1.207 1790000000123456789\n1 REMOVED 10.0.1.207 1790000000123456789\n");
}

TEST(MemberLog, SeqContinuesOverRestartsAndItKnowsWhoIsThere) {
  const TemporaryFolder folder;
  const Path path = folder / "log";
  for (int restart = 0; restart < 3; ++restart) {
    MemberLog log(path);
    EXPECT_EQ(log.next_seq(), 3u * restart);
    log.append(true, "b" + std::to_string(restart), kTime);
    log.append(true, "a", kTime);
    log.append(false, "a", kTime);
  }
  EXPECT_EQ(MemberLog(path).present(), (Names{"b0", "b1", "b2"}));
  const std::regex line(R"(\d+ (ADDED|REMOVED) \S+ \d{19})");
  for (const std::string& text : split(trim(read_file(path)), '\n')) EXPECT_TRUE(std::regex_match(text, line)) << text;
}

TEST(MemberLog, ATornLastLineIsClosedAndPassedOver) {
  const TemporaryFolder folder;
  const Path path = folder / "log";
  write_in_place(path, "0 ADDED w1 17\n1 REMO");
  MemberLog log(path);
  log.append(true, "w2", kTime);
  EXPECT_EQ(read_file(path), "0 ADDED w1 17\n1 REMO\n1 ADDED w2 1790000000123456789\n");
  EXPECT_EQ(MemberLog(path).next_seq(), 2u);
  EXPECT_EQ(MemberLog(path).present(), (Names{"w1", "w2"}));
}

TEST(EventLog, EventsGetNumberAndTimeAndAreReadBack) {
  const TemporaryFolder folder;
  const Path path = folder / "events.jsonl";
  EventLog(path).append(Json::object({{"event", "hosts"}}), kTime);
  const Json second = EventLog(path).append(Json::object({{"event", "commit"}, {"generation", 2}}), kTime);
  EXPECT_EQ(second.dump(), R"({"seq":1,"time":"2026-09-21T14:13:20.123456Z","event":"commit","generation":2})");
  ASSERT_EQ(read_events(path).size(), 2u);
  EXPECT_EQ(read_events(path)[1], second);
}

TEST(EventLog, DamagedLinesArePassedOver) {
  const TemporaryFolder folder;
  const Path path = folder / "events.jsonl";
  write_in_place(path, "{\"seq\":4,\"event\":\"a\"}\nnot json\n[1]\n{\"seq\":\"x\"}\n{\"seq\":5,\"ev");
  EXPECT_EQ(read_events(path).size(), 2u);
  EXPECT_EQ(EventLog(path).append(Json::object({{"event", "b"}}), kTime).at("seq").as_integer(), 5);
  EXPECT_TRUE(read_events(folder / "none").empty());
}

TEST(GenerationJournal, ASuccessorUsesNoNumberAgain) {
  const TemporaryFolder folder;
  const Path path = folder / "journal.jsonl";
  const std::vector<Member> members = {{4, "w1", 0, {"10.0.0.1", 4000}}, {9, "w2", 1, {"::1", 65'535}}};
  {
    GenerationJournal journal(path);
    EXPECT_EQ(journal.next_generation(), 1u);
    journal.append({.generation = 0, .committed = false, .next_worker = 1'001, .members = {}});
    journal.append({.generation = 6, .committed = false, .next_worker = 1'001, .members = {}});
    journal.append({.generation = 6, .committed = true, .next_worker = 1'001, .members = members});
    journal.append({.generation = 7, .committed = false, .next_worker = 1'001, .members = {}});
  }
  write_in_place(path, "{\"generation\":8,\"state\":\"comm", true);
  const GenerationJournal journal(path);
  EXPECT_EQ(journal.next_generation(), 8u);
  EXPECT_EQ(journal.next_worker(), 1'001u);
  EXPECT_EQ(journal.members(), members);
}

TEST(Records, AFullDiskOrAMissingFolderIsAnErrorWithThePath) {
  const TemporaryFolder folder;
  try {
    MemberLog log(folder / "no such folder/log");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no such folder/log"), std::string::npos);
  }
  LineFile full("/dev/full");
  EXPECT_THROW(full.append("x", false), Error);
}

TEST(Records, ATornLineOnAFullDiskIsClosedOnceThereIsRoom) {
  const TemporaryFolder folder;
  const Path path = folder / "lines";
  const SmallFiles disk;
  write_in_place(path, "half");
  disk.limit(4);
  LineFile file(path);
  EXPECT_TRUE(file.file().is_behind());
  disk.lift();
  file.append("whole", false);
  EXPECT_EQ(read_file(path), "half\nwhole\n");
}

}  // namespace
}  // namespace dtrain::elastic
