#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/coordinator.hpp>

#include "common/small_files.hpp"
#include "decide/state.hpp"
#include "elastic/temporary_folder.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

// Records the calls; hosts answer from within the call, as a launcher that fails at once does.
struct FakeAgentPool final : AgentPool {
  void start_host(const HostLine& host) override {
    hosts.push_back(host.name);
    if (coordinator) coordinator->feed(HostUp{host.name, "10.0.0.1"}, now);
  }
  void run_admission_check(const std::string&) override {}
  void start_worker(const std::string& host, int slot, WorkerId worker) override {
    workers.push_back(worker);
    EXPECT_EQ(hosts.empty(), false) << host << slot;
  }
  void send(WorkerId worker, const ToWorker& message) override { sent.emplace_back(worker, message); }
  void send_all(const std::vector<WorkerId>& to, const ToWorker& message) override {
    for (const WorkerId worker : to) send(worker, message);
  }
  void kill_worker(WorkerId worker, bool) override { killed.push_back(worker); }
  void end_host(const std::string&) override { silent = true; }
  void announce_voters(Generation, bool, const std::vector<Member>&) override {}
  std::size_t answered_since(const std::vector<std::string>& names,
                             std::chrono::steady_clock::time_point) const override {
    return silent ? 0 : names.size();
  }

  Coordinator* coordinator = nullptr;
  Moment now;
  bool silent = false;  // no agent answers
  std::vector<std::string> hosts;
  std::vector<WorkerId> workers, killed;
  std::vector<std::pair<WorkerId, ToWorker>> sent;
};

class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() {
    agent_pool_.now = {Time{1h}, WallTime{1000h}};
    write_file_atomic(folder_ / "host_worker", "w1\n");
    options_.folder = folder_ / "";
    options_.policy.elastic = true;
    options_.on_say = [this](const Say& line) { said_.push_back(line.text); };
  }
  Coordinator& begin() {
    coordinator_.emplace(options_, agent_pool_, agent_pool_.now);
    agent_pool_.coordinator = &*coordinator_;
    coordinator_->tick(agent_pool_.now);
    return *coordinator_;
  }
  void pass(std::chrono::milliseconds time) {
    for (; time > 0ms; time -= 50ms) {
      agent_pool_.now.time += 50ms;
      agent_pool_.now.wall += 50ms;
      coordinator_->tick(agent_pool_.now);
    }
  }
  void says(FromWorker message, WorkerId worker = 1) {
    coordinator_->feed(WorkerSays{worker, message}, agent_pool_.now);
  }
  Json ask(Json body) {
    Json answer;
    coordinator_->feed(Request{std::move(body), [&](Json json) { answer = std::move(json); }}, agent_pool_.now);
    return answer;
  }
  int said(std::string_view part) const {
    return static_cast<int>(
        std::ranges::count_if(said_, [&](const std::string& text) { return text.find(part) != text.npos; }));
  }
  // One worker alone, through its first step.
  void train_one() {
    says(Hello{42, comm::PeerAddress{"10.0.0.1", 4000}, "f"});
    says(Ready{});
    says(Meshed{1, ""});
    says(Entered{1, {true, 0, 0, 0}});
    progress(1, 100);
  }
  void progress(std::uint64_t step, std::uint64_t samples, double share = 0) {
    says(Progress{1, Phase::computing, {true, 0, step, samples}, 0.01, 0.5, 0.4, share});
  }

  TemporaryFolder folder_;
  FakeAgentPool agent_pool_;
  CoordinatorOptions options_;
  std::vector<std::string> said_;
  std::optional<Coordinator> coordinator_;
};

TEST_F(CoordinatorTest, StartsTheHostsOfTheFileAndAWorkerInEverySlot) {
  write_file_atomic(folder_ / "host_worker", "w1\nw2 slots=2\n");
  begin();
  EXPECT_EQ(agent_pool_.hosts, (std::vector<std::string>{"w1", "w2"}));
  EXPECT_EQ(agent_pool_.workers.size(), 3u);
}

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
  EXPECT_NE(refused.at("error").at("hint").as_string().find("--yes"), std::string::npos);
  EXPECT_TRUE(edit(R"({"ask": "edit-hosts", "remove": ["w1", "w2"], "any_number": true})").at("ok").as_bool());
  EXPECT_EQ(read_file(folder_ / "host_worker"), "w3 slots=2\n");
}

TEST_F(CoordinatorTest, AnEditRemovesNoHostThatALostFileListed) {
  begin();
  std::filesystem::remove(folder_ / "host_worker");
  ask(Json::parse(R"({"ask": "edit-hosts", "add": ["w2"]})", "an edit"));
  EXPECT_EQ(coordinator_->state().order, (std::vector<std::string>{"w1", "w2"}));
  EXPECT_EQ(said("it lacked w1"), 1);
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
  EXPECT_EQ(read_events(folder_ / "events.jsonl").back().at("event").as_string(), "goodput");
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
