// Planned changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include <dtrain/base/event_kind.hpp>

#include "checked_toy_training.hpp"

namespace dtrain::world {
namespace {

using elastic::Policy;
using Hosts = std::vector<std::string>;

// Events of one kind, in order.
std::vector<Json> events_of(const SimJob& job, EventKind kind) {
  std::vector<Json> found = elastic::read_events(job.folder() / "events.jsonl");
  std::erase_if(found, [&](const Json& event) { return event_kind(event) != kind; });
  return found;
}

Hosts lines_of_log(const SimJob& job) {
  Hosts lines;
  std::istringstream text(read_file(job.folder() / "host_worker_log"));
  std::string seq, what, host, time;
  while (text >> seq >> what >> host >> time) lines.push_back(what + " " + host);
  return lines;
}

// No worker is lost here, however busy the machine is.
Policy calm_policy() {
  constexpr std::chrono::seconds kLong(60);
  Policy policy = quick_policy();
  policy.heartbeat_timeout = policy.hello_timeout = policy.prepare_timeout = policy.mesh_timeout = kLong;
  policy.freeze_timeout = policy.leave_timeout = policy.kill_timeout = kLong;
  policy.hang_floors = {.loading = kLong,
                        .computing = kLong,
                        .first_step = kLong,
                        .evaluating = kLong,
                        .saving = kLong,
                        .waiting = kLong};
  return policy;
}

using Condition = std::function<bool(const SimJob&)>;
Condition seen(std::uint64_t samples) {
  return [=](const SimJob& job) { return job.furthest().samples_seen >= samples; };
}
Condition logged(std::string line) {
  return [=](const SimJob& job) { return std::ranges::count(lines_of_log(job), line) > 0; };
}
Condition happened(EventKind kind, std::size_t times = 1) {
  return [=](const SimJob& job) { return events_of(job, kind).size() >= times; };
}

// Actions in sequence, each as soon as its condition holds. Until the last one the job's steps are slow.
class Script {
 public:
  Script& when(Condition when, std::function<void(SimJob&)> act = {}) {
    acts_.emplace_back(std::move(when), std::move(act));
    return *this;
  }
  Script& hosts(Condition when_, Hosts hosts) {
    return when(std::move(when_), [hosts = std::move(hosts)](SimJob& job) { job.set_hosts(hosts); });
  }
  // Runs a job of the toy training.
  std::string run(const Hosts& hosts, const Policy& policy = calm_policy(), SimOptions options = {}) {
    options.fault_at = [this](const WorkerFacts&, Place place, comm::CommPoint, int) {
      if (place == Place::vote && !done_) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      return Fault::none;
    };
    job_.emplace(training_, hosts, policy, options);
    const std::string wrong = job_->run([this](SimJob& job) { act(job); });
    return wrong.empty() && !done_ ? "the script was not played to its end\n" + job_->job().last_events() : wrong;
  }
  SimJob& job() { return job_->job(); }

 private:
  void act(SimJob& job) {
    if (next_ < acts_.size() && acts_[next_].first(job)) {
      if (acts_[next_].second) acts_[next_].second(job);
      ++next_;
    }
    done_ = next_ == acts_.size();
  }

  CheckedToyTraining training_{{.epochs = 80}};
  std::vector<std::pair<Condition, std::function<void(SimJob&)>>> acts_;
  std::size_t next_ = 0;
  std::atomic<bool> done_ = false;
  std::optional<CheckedJob> job_;
};

Json ask(SimJob& job, const char* what) { return job.ask(Json::object({{"ask", what}})); }

TEST(World, TrainsToTheSameBitsWithAnyNumberOfWorkers) {
  for (const Hosts& hosts : {Hosts{"a"}, {"a", "b"}, {"a", "b", "c"}, {"a slots=3", "b", "c"}}) {
    CheckedToyTraining training({.epochs = 1});
    EXPECT_EQ(CheckedJob(training, hosts).run(), "");
  }
}

TEST(World, LetsWorkersJoinAndLeaveWithoutFreezingAnybody) {
  Script script;
  script.hosts(seen(50), {"a", "b"}).hosts(logged("ADDED b"), {"a", "b", "c"}).hosts(logged("ADDED c"), {"b", "c"});
  script.when(logged("REMOVED a"));
  EXPECT_EQ(script.run({"a"}), "");
  EXPECT_EQ(events_of(script.job(), EventKind::freeze).size(), 0u);
  EXPECT_EQ(lines_of_log(script.job()), (Hosts{"ADDED a", "ADDED b", "ADDED c", "REMOVED a"}));
}

TEST(World, ReplacesAWorkerAtOneBoundaryAndStartsTheNewOneOnce) {
  Script script;
  script.hosts(seen(100), {"a", "b", "d"}).when(logged("ADDED d"));
  EXPECT_EQ(script.run({"a", "b", "c"}), "");
  EXPECT_EQ(events_of(script.job(), EventKind::commit).size(), 2u);
  EXPECT_EQ(script.job().agent_pool().started(), 4);
  const Hosts log = lines_of_log(script.job());
  EXPECT_EQ(Hosts(log.begin() + 3, log.end()), (Hosts{"REMOVED c", "ADDED d"}));
}

TEST(World, AnyWorkerCanBeRemovedUntilNoneOfTheFirstIsLeft) {
  Script script;
  script.hosts(seen(50), {"b", "c"}).hosts(logged("ADDED c"), {"c", "d"}).hosts(logged("ADDED d"), {"d"});
  script.when(logged("REMOVED c"));
  EXPECT_EQ(script.run({"a", "b"}), "");
  EXPECT_EQ(events_of(script.job(), EventKind::freeze).size(), 0u);
}

TEST(World, ChangesOnlyBetweenEpochsUnlessAskedOtherwise) {
  Policy policy = calm_policy();
  policy.boundary = elastic::Boundary::epoch;
  std::set<std::uint64_t> changed_at;  // steps of their epoch
  const auto note = [&](const SimJob& job) {
    if (const auto& current = job.state().current; current && current->start) changed_at.insert(current->start->step);
    return happened(EventKind::generation, 3)(job);
  };
  Script script;
  script.hosts(seen(50), {"a", "b", "c"}).hosts(logged("ADDED c"), {"c"}).when(note);
  EXPECT_EQ(script.run({"a", "b"}, policy), "");
  EXPECT_EQ(changed_at, (std::set<std::uint64_t>{0}));
}

TEST(World, ADrainedHostGoesAtTheNextStepAndStaysInTheFile) {
  Json list;
  Script script;
  script.when(seen(100), [](SimJob& job) {
    EXPECT_EQ(job.ask(Json::object({{"ask", "drain"}, {"host", "b"}})).dump(), R"({"ok":true})");
  });
  script.when(happened(EventKind::host_down), [&](SimJob& job) { list = ask(job, "list"); });
  EXPECT_EQ(script.run({"a", "b"}), "");
  EXPECT_TRUE(logged("REMOVED b")(script.job()));
  ASSERT_EQ(list.at("hosts").as_array().size(), 2u);
  EXPECT_EQ(list.at("hosts").as_array()[1].at("state").as_string(), "drained");
}

TEST(World, AStopEndsTheJobResumable) {
  for (const bool at_once : {false, true}) {
    CheckedToyTraining training({.epochs = 1000});
    CheckedJob job(training, {"a", "b"}, calm_policy());
    const elastic::Finish finish = job.job().run([&](SimJob& sim) {
      if (seen(100)(sim)) sim.ask(Json::object({{"ask", "stop"}, {"now", at_once}}));
    });
    EXPECT_EQ(finish.exit_code, ExitCode::resumable);
    EXPECT_EQ(events_of(job.job(), EventKind::left).size(), at_once ? 0u : 2u);
  }
}

TEST(World, BelowTheMinimumItHoldsItsStateAndGoesOnWithTheNextWorker) {
  Policy policy = calm_policy();
  policy.min_workers = 2;
  Script script;
  script.hosts(seen(100), {"a"}).hosts(happened(EventKind::hold), {"a", "c"}).when(logged("ADDED c"));
  EXPECT_EQ(script.run({"a", "b"}, policy), "");
}

TEST(World, WorkersAboveTheMaximumAreSpares) {
  Policy policy = calm_policy();
  policy.max_workers = 2;
  Json list;
  Script script;
  script.when(seen(100), [&](SimJob& job) { list = ask(job, "list"); });
  EXPECT_EQ(script.run({"a", "b", "c"}, policy), "");
  EXPECT_EQ(list.at("workers").as_integer(), 2);
  const Json& spare = list.at("hosts").as_array()[2];
  EXPECT_EQ(spare.at("state").as_string(), "spare");
  EXPECT_NE(spare.at("reason").as_string(), "");
}

TEST(World, AHostThatCannotBeStartedDisturbsNobody) {
  SimOptions options;
  options.broken_hosts = {"b"};
  Json list;
  Script script;
  script.hosts(seen(100), {"a", "b"}).when(happened(EventKind::host_down), [&](SimJob& job) {
    list = ask(job, "list");
  });
  EXPECT_EQ(script.run({"a"}, calm_policy(), options), "");
  EXPECT_EQ(events_of(script.job(), EventKind::freeze).size(), 0u);
  const Json& broken = list.at("hosts").as_array()[1];
  EXPECT_NE(broken.at("reason").as_string().find("connection refused"), std::string::npos) << broken.dump();
}

TEST(World, TheListTellsWhatEachHostDoes) {
  Json list;
  Script script;
  // Heartbeats of different workers report their steps at different times.
  const Condition all_told = [](const SimJob& job) {
    return std::ranges::all_of(job.state().workers,
                               [](const auto& each) { return each.second.progress.step_seconds > 0; });
  };
  script.when(seen(600)).when(all_told, [&](SimJob& job) { list = ask(job, "list"); });
  EXPECT_EQ(script.run({"a slots=2", "b"}), "");
  EXPECT_EQ(list.at("schema").as_string(), "dtrain.hosts-list/1");
  EXPECT_EQ(list.at("workers").as_integer(), 3);
  EXPECT_GT(list.at("samples_per_second").as_number(), 0);
  EXPECT_GT(list.at("goodput_percent").as_number(), 50);
  const Json& a = list.at("hosts").as_array()[0];
  EXPECT_EQ(a.at("name").as_string(), "a");
  EXPECT_EQ(a.at("address").as_string(), "127.0.0.1");
  EXPECT_EQ(a.at("state").as_string(), "member");
  EXPECT_EQ(a.at("ranks").as_array().size(), 2u);
  EXPECT_EQ(a.at("pids").as_array().size(), 2u);
  EXPECT_EQ(a.at("generation").as_integer(), 1);
  EXPECT_GT(a.at("workers").as_array()[0].at("step_seconds").as_number(), 0);
}

TEST(World, RequestsThatMeanNothingAreAnsweredWithTheReason) {
  CheckedToyTraining training({.epochs = 1});
  CheckedJob job(training, {"a"});
  const auto message = [&](Json body) { return job.job().ask(std::move(body)).at("error").at("message").as_string(); };
  EXPECT_EQ(message(Json::object({{"ask", "dance"}})), "the coordinator knows no request \"dance\"");
  EXPECT_EQ(message(Json::object({{"ask", "drain"}, {"host", "z"}})), "the job has no host z");
  EXPECT_EQ(message(Json::object({{"ask", "drain"}})), "JSON: the key \"host\" is missing");
  EXPECT_EQ(message(Json()), "JSON: expected an object here");
  EXPECT_EQ(job.run(), "");
}

}  // namespace
}  // namespace dtrain::world
