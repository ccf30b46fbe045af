// What a job of many hosts costs its coordinator's agent pool: joins a second, and processor time for heartbeats.
//   dtrain_agent_pool_bench [AGENTS [HEARTBEATS A SECOND]]
#include <dtrain/elastic/network_agent_pool.hpp>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

#include "agent/wire.hpp"

using namespace dtrain;
using namespace std::chrono_literals;

namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Agents without processes: each joins, and speaks for one worker.
class Swarm final : public elastic::AgentLauncher {
 public:
  ~Swarm() override {
    loop_.stop();
    thread_.join();
  }
  void start(const elastic::HostLine&, const elastic::AgentOrder& join, Failed) override {
    loop_.post([this, join] {
      agents_.push_back(net::connect_channel(loop_, join.address, join.port, join.token, 30s));
      agents_.back()->listen(
          {[](const std::string&) {},
           [](const std::string& why) { fmt::print(stderr, "an agent lost its connection: {}\n", why); }});
      const elastic::JoinRequest request{.host = join.host, .tree = join.tree};
      agents_.back()->send(encode(elastic::Tag::join, 0, to_json(request).dump()));
    });
  }
  void beat(std::chrono::milliseconds pause) {
    elastic::Progress progress{.generation = 3, .phase = elastic::Phase::computing, .position = {true, 1, 2, 3}};
    progress.step_seconds = 0.123456789;
    const std::string text = to_json(elastic::FromWorker(progress)).dump();
    for (std::size_t i = 0; i < agents_.size(); ++i) agents_[i]->send(encode(elastic::Tag::say, i + 1, text));
    loop_.after(pause, [this, pause] { beat(pause); });
  }
  net::Loop& loop() { return loop_; }

 private:
  net::Loop loop_;
  std::vector<std::shared_ptr<net::Channel>> agents_;
  std::thread thread_{[this] { loop_.run(); }};
};

}  // namespace

int main(int argc, char** argv) {
  const int hosts = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int beats = argc > 2 ? std::atoi(argv[2]) : 5;
  net::Loop loop;
  Swarm swarm;
  int up = 0;
  std::int64_t heard = 0;
  double begun = 0;
  elastic::NetworkAgentPool* pool = nullptr;
  const auto start = std::chrono::steady_clock::now();
  elastic::NetworkAgentPoolOptions options{.token = "token", .job_folder = ".", .job = {}};
  elastic::NetworkAgentPool agent_pool(loop, swarm, options, [&](const elastic::AgentPoolEvent& event) {
    if (std::holds_alternative<elastic::WorkerSays>(event)) ++heard;
    if (!std::holds_alternative<elastic::HostUp>(event)) return;
    const auto& host = std::get<elastic::HostUp>(event).host;
    pool->start_worker(host, 0, static_cast<elastic::WorkerId>(std::atoi(host.c_str())));
    if (++up < hosts) return;
    const std::chrono::duration<double> joined = std::chrono::steady_clock::now() - start;
    fmt::print("{} agents joined in {:.2f} s\n", hosts, joined.count());
    begun = thread_seconds();
    swarm.loop().post([&] { swarm.beat(1000ms / beats); });
    loop.after(10s, [&] {
      const double used = thread_seconds() - begun;
      fmt::print("{:.0f} heartbeats/s use {:.1f} % of a core, {:.1f} us each\n", static_cast<double>(heard) / 10,
                 10 * used, 1e6 * used / static_cast<double>(heard));
      loop.stop();
    });
  });
  pool = &agent_pool;
  loop.post([&] {
    for (int i = 1; i <= hosts; ++i) agent_pool.start_host({.name = std::to_string(i), .user = "", .host = "h"});
  });
  loop.run();
}
