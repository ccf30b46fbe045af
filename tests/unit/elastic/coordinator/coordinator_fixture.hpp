// A coordinator under test, with a pool of agents that records what it is told.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dtrain/elastic/coordinator.hpp>

#include "elastic/temporary_folder.hpp"

namespace dtrain::elastic {

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

}  // namespace dtrain::elastic
