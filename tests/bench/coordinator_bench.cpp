// What a thousand workers cost the coordinator: processor time per second of the job, by kind of work. Messages are
// read from their text, as they come from the agents; the agent pool only counts.
#include <fmt/core.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <time.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <dtrain/elastic/coordinator.hpp>

#include "elastic/decide/state.hpp"

namespace {

using namespace dtrain;
using namespace dtrain::elastic;
using namespace std::chrono_literals;

constexpr auto kHeartbeat = 200ms, kTick = 50ms;

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Writes every message once, also one that goes to many, as the real agent pool does.
class CountingAgentPool final : public AgentPool {
 public:
  void start_host(const HostLine& host) override { to_come.push_back(HostUp{host.name, "10.0.0.1"}); }
  void run_admission_check(const std::string& host) override { to_come.push_back(AdmissionChecked{host, {}}); }
  void start_worker(const std::string&, int, WorkerId worker) override { started.push_back(worker); }
  void send(WorkerId worker, const ToWorker& message) override { send_all({worker}, message); }
  void send_all(const std::vector<WorkerId>& workers, const ToWorker& message) override {
    bytes += to_json(message).dump().size() * workers.size();
    messages += workers.size();
    for (const WorkerId worker : workers) {
      if (const auto* prepare = std::get_if<Prepare>(&message)) prepared.emplace_back(worker, prepare->generation);
      if (const auto* commit = std::get_if<Commit>(&message)) committed.emplace_back(worker, commit->generation);
      if (std::holds_alternative<Leave>(message)) to_come.push_back(WorkerExited{worker, 0, 0, {}});
    }
  }
  void kill_worker(WorkerId worker, bool) override { to_come.push_back(WorkerExited{worker, 0, 9, {}}); }
  void end_host(const std::string& host) override { to_come.push_back(HostDown{host, "ended"}); }
  void announce_voters(Generation, bool, const std::vector<Member>&) override {}
  std::size_t answered_since(const std::vector<std::string>& names,
                             std::chrono::steady_clock::time_point) const override {
    return names.size();
  }

  std::vector<AgentPoolEvent> to_come;
  std::vector<WorkerId> started;
  std::vector<std::pair<WorkerId, Generation>> prepared, committed;
  std::size_t messages = 0, bytes = 0;
};

class Bench {
 public:
  explicit Bench(int workers) : workers_(workers) {
    std::string name = std::filesystem::temp_directory_path() / "dtrain-coordinator-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    write_hosts(workers);
    CoordinatorOptions options;
    options.folder = folder_;
    options.policy.elastic = true;
    options.policy.boundary = Boundary::step;
    coordinator_ = std::make_unique<Coordinator>(options, agent_pool_, now_);
  }
  ~Bench() { std::filesystem::remove_all(folder_); }

  void run() {
    measure("start", 5, [this](int) { turn(); });
    measure("heartbeats", 20, [this](int tick) {
      if (tick % (kHeartbeat / kTick) == 0) beat();
      turn();
    });
    measure("heartbeats, a join or leave each second", 20, [this](int tick) {
      if (tick % (1s / kTick) == 0) change_hosts(workers_ + (tick / (1s / kTick)) % 2);
      if (tick % (kHeartbeat / kTick) == 0) beat();
      turn();
    });
  }

 private:
  void write_hosts(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("host{}\n", i);
    write_file_atomic(folder_ / "host_worker", text);
  }
  void change_hosts(int count) {
    write_hosts(count);
    coordinator_->feed(Request{Json::object({{"ask", "hosts-changed"}}), [](Json) {}}, now_);
  }

  template <typename Work>
  void measure(const char* name, int seconds, Work work) {
    const std::size_t heard = heard_, sent = agent_pool_.messages;
    const Generation generation = coordinator_->state().next_generation;
    const double begin = processor_seconds();
    for (int tick = 0; tick < seconds * (1s / kTick); ++tick) work(tick);
    const double used = processor_seconds() - begin;
    const auto each_second = [&](std::size_t count) { return static_cast<double>(count) / seconds; };
    fmt::print("{:<42} {:6.2f} % of a core, {:7.0f} messages in and {:6.0f} out a second, {} generations, {} members\n",
               name, 100 * used / seconds, each_second(heard_ - heard), each_second(agent_pool_.messages - sent),
               coordinator_->state().next_generation - generation,
               coordinator_->state().current ? coordinator_->state().current->members.size() : 0);
  }

  void hear(WorkerId worker, const FromWorker& message) {
    ++heard_;
    const std::string text = to_json(message).dump();
    coordinator_->feed(WorkerSays{worker, from_worker_from_json(Json::parse(text, "a worker"))}, now_);
  }

  // Everybody does at once what it was told.
  void turn() {
    now_.time += kTick;
    now_.wall += kTick;
    coordinator_->tick(now_);
    for (AgentPoolEvent& event : std::exchange(agent_pool_.to_come, {})) coordinator_->feed(std::move(event), now_);
    for (const WorkerId worker : std::exchange(agent_pool_.started, {})) {
      hear(worker, Hello{1000, {"10.0.0.1", static_cast<std::uint16_t>(1024 + worker % 60000)}, "fingerprint"});
      hear(worker, Ready{});
    }
    for (const auto& [worker, generation] : std::exchange(agent_pool_.prepared, {}))
      hear(worker, Meshed{generation, ""});
    for (const auto& [worker, generation] : std::exchange(agent_pool_.committed, {})) {
      hear(worker, Entered{generation, position()});
    }
  }

  void beat() {
    if (!coordinator_->state().current) return;
    ++step_;
    const Generation generation = coordinator_->state().current->number;
    for (const WorkerId worker : std::vector<WorkerId>(coordinator_->state().current->members)) {
      hear(worker, Progress{generation, Phase::computing, position(), 0.0123456789, 0.2, 0.19876543});
    }
  }
  TrainingPosition position() const { return {true, 0, step_, 8192 * step_}; }

  const int workers_;
  Path folder_;
  CountingAgentPool agent_pool_;
  Moment now_{Time{1h}, WallTime{480000h}};
  std::unique_ptr<Coordinator> coordinator_;
  std::uint64_t step_ = 0;
  std::size_t heard_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Bench(argc > 1 ? std::atoi(argv[1]) : 1000).run();
  return 0;
}
