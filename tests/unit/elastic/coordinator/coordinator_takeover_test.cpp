// What a coordinator knows and does that takes over from another one.
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/small_files.hpp"
#include "decide/state.hpp"
#include "elastic/coordinator/coordinator_fixture.hpp"

namespace dtrain::elastic {
namespace {

TEST_F(CoordinatorTest, KnowsWhatTheOneBeforeItWasAskedFor) {
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n");
  begin();
  EXPECT_EQ(ask(Json::object({{"ask", "drain"}, {"host", "w2"}})), Json::object({{"ok", true}}));
  options_.term = 2;
  options_.takeover.emplace();
  begin();
  EXPECT_TRUE(coordinator_->state().hosts.at("w2").drained);
  EXPECT_FALSE(coordinator_->state().hosts.at("w1").drained);
  EXPECT_FALSE(coordinator_->state().ending);
  ask(Json::object({{"ask", "stop"}, {"reason", "enough"}}));
  options_.term = 3;
  begin();
  ASSERT_TRUE(coordinator_->state().ending);
  EXPECT_EQ(coordinator_->state().ending->reason, "enough");
}

TEST_F(CoordinatorTest, KnowsWhichHostsEndSoonAfterATakeover) {
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n");
  begin();
  coordinator_->feed(HostNotice{.host = "w2", .reason = "spot notice"}, agent_pool_.now);
  options_.term = 2;
  options_.takeover.emplace();
  begin();
  EXPECT_TRUE(coordinator_->state().hosts.at("w2").noticed);
  EXPECT_EQ(coordinator_->state().hosts.at("w2").drain_reason, "spot notice");
  EXPECT_FALSE(coordinator_->state().hosts.at("w1").noticed);
}

TEST_F(CoordinatorTest, EndsAJobAtOnceAsTheOneBeforeItWasAsked) {
  begin();
  ask(Json::object({{"ask", "stop"}, {"reason", "enough"}, {"now", true}}));
  options_.term = 2;
  options_.takeover.emplace();
  begin();
  ASSERT_TRUE(coordinator_->state().ending);
  EXPECT_NE(coordinator_->state().ending->stage, Ending::Stage::asked);
}

TEST_F(CoordinatorTest, StartsNothingForAJobThatTheOneBeforeItWasToStop) {
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n");
  begin();
  ask(Json::object({{"ask", "drain"}, {"host", "w2"}}));
  ask(Json::object({{"ask", "stop"}, {"reason", "enough"}}));
  ASSERT_FALSE(coordinator_->finished());
  agent_pool_.hosts.clear();
  options_.term = 2;
  options_.takeover.emplace();
  begin();
  ASSERT_TRUE(coordinator_->state().ending);
  EXPECT_TRUE(agent_pool_.hosts.empty());
}

TEST_F(CoordinatorTest, StopsAJobThatWasGivenUpWithTheSameExitCode) {
  begin();
  EventLog(folder_ / "events.jsonl")
      .append(Json::object({{"event", "stop"}, {"exit_code", 93}, {"reason", "no progress"}}), agent_pool_.now.wall);
  options_.term = 2;
  options_.takeover.emplace();
  begin();
  ASSERT_TRUE(coordinator_->state().ending);
  EXPECT_EQ(coordinator_->state().ending->exit_code, ExitCode::no_progress);
}

TEST_F(CoordinatorTest, TakesOverWithoutAHostList) {
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n");
  begin();
  std::filesystem::remove(folder_ / "host_worker");
  options_.term = 2;
  options_.takeover.emplace();
  begin();
  EXPECT_EQ(said("host_worker"), 1);
  EXPECT_EQ(coordinator_->state().order, (std::vector<std::string>{"w1", "w2"}));
  write_file_atomic(folder_ / "host_worker", "# nobody\n");
  options_.term = 3;
  begin();
  EXPECT_EQ(said("names no host"), 1);
  EXPECT_EQ(coordinator_->state().order, (std::vector<std::string>{"w1", "w2"}));
}

TEST_F(CoordinatorTest, TakesOverBesideAHostListThatIsNotWholeOrWasRefused) {
  write_file_atomic(folder_ / "host_worker", "w1\nw2\nw3\n");
  begin();
  write_file_atomic(folder_ / "host_worker", "w1\nw");
  options_.term = 2;
  options_.takeover.emplace();
  begin();
  pass(5s);
  EXPECT_EQ(coordinator_->state().order, (std::vector<std::string>{"w1", "w2", "w3"}));
  write_file_atomic(folder_ / "host_worker", "w1\n");
  options_.term = 3;
  begin();
  pass(5s);
  EXPECT_EQ(said("looks like an accident"), 1);
  EXPECT_EQ(coordinator_->state().order, (std::vector<std::string>{"w1", "w2", "w3"}));
  write_file_atomic(folder_ / "host_worker", "w1\nw3\nw4\n");
  pass(5s);
  EXPECT_EQ(coordinator_->state().order, (std::vector<std::string>{"w1", "w3", "w4"}));
}

TEST_F(CoordinatorTest, TakesOverOnAFullDiskAndWritesItsRecordsLater) {
  begin();
  coordinator_.reset();
  const Path journal = folder_ / "journal.jsonl";
  write_in_place(journal, read_file(journal) + "torn");
  options_.term = 2;
  options_.takeover.emplace();
  const SmallFiles disk;
  disk.limit(1);
  begin();
  pass(2s);
  EXPECT_EQ(said("journal.jsonl"), 1);
  EXPECT_FALSE(coordinator_->finished());
  disk.lift();
  pass(2s);
  EXPECT_EQ(said("can be written again"), 1);
  EXPECT_EQ(GenerationJournal(journal).term(), 2u);
  coordinator_.reset();
}

}  // namespace
}  // namespace dtrain::elastic
