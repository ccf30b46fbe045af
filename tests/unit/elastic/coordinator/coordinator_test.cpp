#include <dtrain/elastic/coordinator.hpp>

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "decide/state.hpp"
#include "elastic/coordinator/coordinator_fixture.hpp"
#include "records/pending_requests.hpp"

namespace dtrain::elastic {
namespace {

TEST_F(CoordinatorTest, StartsTheHostsOfTheFileAndAWorkerInEverySlot) {
  write_file_atomic(folder_ / "host_worker", "w1\nw2 slots=2\n");
  begin();
  EXPECT_EQ(agent_pool_.hosts, (std::vector<std::string>{"w1", "w2"}));
  EXPECT_EQ(agent_pool_.workers.size(), 3u);
}

TEST_F(CoordinatorTest, RefusesToBeginWithoutAHost) {
  write_file_atomic(folder_ / "host_worker", "# nobody\n");
  EXPECT_THROW(begin(), UsageError);
}

TEST_F(CoordinatorTest, FollowsAnEditOfTheFileByHandAfterItSettled) {
  begin();
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n");
  pass(1500ms);
  EXPECT_EQ(agent_pool_.hosts.size(), 1u);
  pass(1500ms);
  EXPECT_EQ(agent_pool_.hosts.size(), 2u);
}

TEST_F(CoordinatorTest, FollowsItsOwnCommandsAtOnceAndTellsOfBadLines) {
  begin();
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n-x\n");
  const Json answer = ask(Json::object({{"ask", "hosts-changed"}}));
  EXPECT_EQ(agent_pool_.hosts.size(), 2u);
  EXPECT_EQ(answer.at("problems").as_array().size(), 1u);
  EXPECT_EQ(said("host_worker: "), 1);
}

TEST_F(CoordinatorTest, EditsTheFileForWhoeverAsksAndRefusesToLoseMostHosts) {
  begin();
  const auto edit = [&](const char* text) { return ask(Json::parse(text, "an edit")); };
  edit(R"({"ask": "edit-hosts", "add": ["w2", "w3 slots=2"]})");
  EXPECT_EQ(agent_pool_.hosts.size(), 3u);
  EXPECT_TRUE(edit(R"({"ask": "edit-hosts", "add": ["w2"]})").find("error"));
  const Json refused = edit(R"({"ask": "edit-hosts", "remove": ["w1", "w2"]})");
  EXPECT_NE(refused.at("error").at("hint").as_string().find("setting 'yes'"), std::string::npos);
  EXPECT_TRUE(edit(R"({"ask": "edit-hosts", "remove": ["w1", "w2"], "any_number": true})").at("ok").as_bool());
  EXPECT_EQ(read_file(folder_ / "host_worker"), "w3 slots=2\n");
}

TEST_F(CoordinatorTest, AnEditRemovesNoHostThatALostFileListed) {
  begin();
  std::filesystem::remove(folder_ / "host_worker");
  const Json answer = ask(Json::parse(R"({"ask": "edit-hosts", "add": ["w2"]})", "an edit"));
  EXPECT_EQ(coordinator_->state().order, (std::vector<std::string>{"w1", "w2"}));
  EXPECT_EQ(said("it lacked w1"), 1);
  const Json::Array& problems = answer.at("problems").as_array();
  ASSERT_EQ(problems.size(), 1u) << "the user who asked for the edit hears of it too";
  EXPECT_TRUE(problems[0].as_string().starts_with("it lacked w1")) << problems[0].as_string();
}

TEST_F(CoordinatorTest, TheHostsOfAJobThatIsNotElasticAreFixed) {
  options_.policy.elastic = false;
  begin();
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n");
  EXPECT_EQ(ask(Json::object({{"ask", "hosts-changed"}})).at("error").at("kind").as_string(), "usage");
  pass(5s);
  EXPECT_EQ(agent_pool_.hosts.size(), 1u);
}

TEST_F(CoordinatorTest, HandsOnWhatMembersReport) {
  std::vector<Json> reports;
  options_.on_report = [&](const Json& report) { reports.push_back(report); };
  begin();
  train_one();
  says(Report{Json::object({{"event", "step"}})});
  says(Report{Json::object({{"event", "step"}})}, 77);  // an unknown worker
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(CoordinatorTest, WritesLogJournalAndEvents) {
  begin();
  train_one();
  EXPECT_TRUE(read_file(folder_ / "host_worker_log").starts_with("0 ADDED w1 "));
  const std::vector<Json> events = read_events(folder_ / "events.jsonl");
  EXPECT_EQ(events.front().at("event").as_string(), "hosts");
  EXPECT_EQ(GenerationJournal(folder_ / "journal.jsonl").next_generation(), 2u);
}

TEST_F(CoordinatorTest, ContinuesTheNumbersOfTheCoordinatorBefore) {
  begin();
  train_one();
  coordinator_.reset();
  const Coordinator& second = begin();
  EXPECT_EQ(second.state().next_generation, 2u);
  EXPECT_GT(agent_pool_.workers.back(), agent_pool_.workers.front());
}

TEST_F(CoordinatorTest, GoesOnWhenItsRecordsCannotBeWritten) {
  options_.prometheus = true;
  make_folder(folder_ / "metrics.prom");  // in the way
  begin();
  train_one();
  for (int second = 0; second < 12; ++second) {
    pass(1s);
    progress(2 + second, 200);
  }
  EXPECT_EQ(said("metrics.prom"), 1) << "once, not every time";
  EXPECT_FALSE(coordinator_->finished());
}

TEST_F(CoordinatorTest, KeepsPrometheusTextUpToDate) {
  options_.prometheus = true;
  begin();
  train_one();
  for (int second = 1; second <= 12; ++second) {
    pass(1s);
    progress(1 + 2 * second, 100 + 200 * second);
  }
  const std::string text = read_file(folder_ / "metrics.prom");
  for (const char* line :
       {"\ndtrain_workers 1\n", "\ndtrain_samples_per_second ", "\ndtrain_goodput_ratio ",
        "\ndtrain_hosts{state=\"member\"} 1\n", "\ndtrain_straggler_score{rank=\"0\",host=\"w1\"} 1\n",
        "# TYPE dtrain_samples_total counter\n", "\ndtrain_sent_bytes_total 0\n"}) {
    EXPECT_NE(text.find(line), text.npos) << line << "\nis not in\n" << text;
  }
}

TEST_F(CoordinatorTest, ListsAHostWithWhatItsWorkersDo) {
  begin();
  train_one();
  pass(2s);
  progress(5, 500);
  const Json list = ask(Json::object({{"ask", "list"}}));
  const Json& host = list.at("hosts").as_array()[0];
  EXPECT_EQ(host.at("pids").dump(), "[42]");
  EXPECT_EQ(host.at("ranks").dump(), "[0]");
  EXPECT_DOUBLE_EQ(host.at("samples_per_second").as_number(), 200);
  EXPECT_EQ(host.find("reason"), nullptr);
  progress(5, 500, 0.25);
  const Json later = ask(Json::object({{"ask", "list"}}));
  EXPECT_DOUBLE_EQ(later.at("hosts").as_array()[0].at("samples_per_second").as_number(), 50);
}

TEST_F(CoordinatorTest, AJobThatWasStoppedAtOnceFinishesWhenItsProcessesAreGone) {
  begin();
  train_one();
  coordinator_->stop("enough", true, agent_pool_.now);
  EXPECT_EQ(agent_pool_.killed, std::vector<WorkerId>{1});
  coordinator_->feed(WorkerExited{1, 0, 9, {}}, agent_pool_.now);
  coordinator_->feed(HostDown{"w1", "ended"}, agent_pool_.now);
  ASSERT_TRUE(coordinator_->finished());
  EXPECT_EQ(coordinator_->finished()->exit_code, ExitCode::resumable);
  EXPECT_NE(read_events(folder_ / "events.jsonl").back().at("event").as_string(), "finish")
      << "whether the work is kept is not known yet";
  for (int time = 0; time < 2; ++time)
    coordinator_->record_end(ExitCode::failed, "enough: nothing saved", agent_pool_.now);
  std::vector<Json> events = read_events(folder_ / "events.jsonl");
  EXPECT_EQ(events.back().at("event").as_string(), "goodput");
  EXPECT_TRUE(events.back().at("percent").is_null()) << "steps were heard of once";
  events.pop_back();
  EXPECT_EQ(events.back().at("event").as_string(), "finish");
  EXPECT_EQ(events.back().at("exit_code").as_integer(), 1);
  EXPECT_EQ(events.back().at("reason").as_string(), "enough: nothing saved");
}

TEST_F(CoordinatorTest, TellsOnceOfAnEditThatItDoesNotUse) {
  begin();
  pass(3s);
  write_in_place(folder_ / "host_worker", "w1\nw2");
  pass(15s);
  EXPECT_EQ(said("no final newline"), 1);
  const Json last = read_events(folder_ / "events.jsonl").back();
  EXPECT_EQ(last.at("event").as_string(), "hosts_refused");
  EXPECT_NE(last.at("reason").as_string().find("no final newline"), std::string::npos);
}

TEST_F(CoordinatorTest, AddingADrainedHostTakesItBack) {
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n");
  begin();
  ask(Json::object({{"ask", "drain"}, {"host", "w2"}}));
  EXPECT_TRUE(coordinator_->state().hosts.at("w2").drained);
  const Json answer = ask(Json::parse(R"({"ask": "edit-hosts", "add": ["w2"]})", "an edit"));
  EXPECT_EQ(answer.find("error"), nullptr) << answer.dump();
  EXPECT_FALSE(coordinator_->state().hosts.at("w2").drained);
  EXPECT_EQ(read_file(folder_ / "host_worker"), "w1\nw2\n");
  EXPECT_TRUE(pending_requests_in(read_events(folder_ / "events.jsonl")).drained.empty())
      << "nor does the next coordinator drain it";
}

TEST_F(CoordinatorTest, ARemovedHostIsNotDrained) {
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n");
  begin();
  ask(Json::parse(R"({"ask": "edit-hosts", "remove": ["w2"], "any_number": true})", "an edit"));
  ASSERT_TRUE(coordinator_->state().hosts.contains("w2")) << "it is leaving";
  const Json refused = ask(Json::object({{"ask", "drain"}, {"host", "w2"}}));
  EXPECT_EQ(refused.at("error").at("message").as_string(), "w2 was removed and is leaving");
}

TEST_F(CoordinatorTest, ADrainThatLeavesTooFewWorkersNeedsAYes) {
  options_.policy.min_workers = 2;
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n");
  begin();
  const auto drain = [&](const char* text) { return ask(Json::parse(text, "a drain")); };
  const Json refused = drain(R"({"ask": "drain", "hosts": ["w2"], "any_number": false})");
  ASSERT_TRUE(refused.find("error")) << refused.dump();
  EXPECT_NE(refused.at("error").at("message").as_string().find("1 worker of at least 2"), std::string::npos);
  EXPECT_NE(refused.at("error").at("hint").as_string().find("setting 'yes'"), std::string::npos);
  EXPECT_FALSE(coordinator_->state().hosts.at("w2").drained);
  EXPECT_EQ(drain(R"({"ask": "drain", "hosts": ["w2"], "any_number": true})"), Json::object({{"ok", true}}));
  EXPECT_TRUE(coordinator_->state().hosts.at("w2").drained);
}

// As a drain does. w2 is drained already, so the last worker is on w1.
TEST_F(CoordinatorTest, ARemovalThatLeavesTooFewWorkersNeedsAYes) {
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n");
  begin();
  const auto request = [&](const char* text) { return ask(Json::parse(text, "a request")); };
  request(R"({"ask": "drain", "host": "w2"})");
  const Json refused = request(R"({"ask": "edit-hosts", "remove": ["w1"], "keep_enough": true})");
  ASSERT_TRUE(refused.find("error")) << refused.dump();
  EXPECT_NE(refused.at("error").at("message").as_string().find("0 workers of at least 1"), std::string::npos);
  EXPECT_NE(refused.at("error").at("hint").as_string().find("setting 'yes' removes w1"), std::string::npos);
  EXPECT_TRUE(request(R"({"ask": "edit-hosts", "remove": ["w2"], "keep_enough": true})").at("ok").as_bool());
  EXPECT_EQ(read_file(folder_ / "host_worker"), "w1\n");
}

TEST_F(CoordinatorTest, TheListSaysWhatTheJobDoes) {
  begin();
  const auto list = [&] { return ask(Json::object({{"ask", "list"}})); };
  EXPECT_EQ(list().at("state").as_string(), "starting");
  train_one();
  progress(2, 200);
  EXPECT_EQ(list().at("state").as_string(), "training");
  EXPECT_EQ(list().find("state_reason"), nullptr);
}

// A host that must go, by a notice of its machine, ends the job with a checkpoint; a user's wish does not.
TEST_F(CoordinatorTest, KeepsTheHostsOfAJobThatIsNotElasticWhateverTheUserAsks) {
  options_.policy.elastic = false;
  begin();
  train_one();
  for (const char* request : {R"({"ask": "drain", "host": "w1"})", R"({"ask": "hosts-changed"})",
                              R"({"ask": "edit-hosts", "remove": ["w1"]})"}) {
    const Json refused = ask(Json::parse(request, "a request")).at("error");
    EXPECT_EQ(refused.at("message").as_string(), "the hosts of this job are fixed") << request;
    EXPECT_NE(refused.at("hint").as_string().find("`dtrain stop`"), std::string::npos) << request;
    EXPECT_FALSE(coordinator_->state().ending) << request;
  }
  coordinator_->feed(HostNotice{"w1", true, "spot"}, agent_pool_.now);
  EXPECT_TRUE(coordinator_->state().ending);
}

class CoordinatorOfAQuorumTest : public CoordinatorTest {
 protected:
  CoordinatorOfAQuorumTest() {
    options_.policy.quorum = true;
    begin();
    train_one();
  }
  std::string last_event() const { return read_events(folder_ / "events.jsonl").back().at("event").as_string(); }
  void end_all() {
    coordinator_->stop("enough", true, agent_pool_.now);
    coordinator_->feed(WorkerExited{1, 0, 9, {}}, agent_pool_.now);
    coordinator_->feed(HostDown{"w1", "ended"}, agent_pool_.now);
    ASSERT_TRUE(coordinator_->finished());
    coordinator_->record_end(ExitCode::resumable, "enough", agent_pool_.now);
  }
};

TEST_F(CoordinatorOfAQuorumTest, WritesHowTheJobEndedThoughNoAgentIsLeftToAnswer) {
  end_all();
  EXPECT_TRUE(agent_pool_.silent);
  EXPECT_EQ(last_event(), "goodput");
}

TEST_F(CoordinatorOfAQuorumTest, WritesNothingWhileAnotherMayBeInCharge) {
  const std::string before = read_file(folder_ / "events.jsonl");
  agent_pool_.silent = true;
  end_all();
  EXPECT_EQ(read_file(folder_ / "events.jsonl"), before);
}

// The next coordinator, which may lead already, would not know of it.
TEST_F(CoordinatorOfAQuorumTest, RefusesToDrainAHostWhileAnotherMayBeInCharge) {
  agent_pool_.silent = true;
  const Json drain = Json::object({{"ask", "drain"}, {"host", "w1"}});
  EXPECT_TRUE(ask(drain).find("error"));
  EXPECT_FALSE(coordinator_->state().hosts.at("w1").drained);
  agent_pool_.silent = false;
  EXPECT_EQ(ask(drain), Json::object({{"ok", true}}));
}

TEST_F(CoordinatorOfAQuorumTest, WritesInOrderWhatHadToWait) {
  agent_pool_.silent = true;
  write_file_atomic(folder_ / "host_worker", "w1\nw2\n");
  ask(Json::object({{"ask", "hosts-changed"}}));
  const std::string waiting = read_file(folder_ / "events.jsonl");
  agent_pool_.silent = false;
  pass(100ms);
  const std::string written = read_file(folder_ / "events.jsonl");
  EXPECT_TRUE(written.starts_with(waiting));
  EXPECT_GT(written.size(), waiting.size());
}

}  // namespace
}  // namespace dtrain::elastic
