// An agent pool with real agents on this machine, driven from the test's thread.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/elastic/network_agent_pool.hpp>
#include <dtrain/launcher/local_launcher.hpp>

namespace dtrain::launcher {

using namespace std::chrono_literals;

template <typename Condition>
bool holds_soon(const Condition& condition, std::chrono::milliseconds deadline = 60s) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

inline std::vector<std::string> agent_with(std::vector<std::string> worker_command) {
  worker_command.insert(worker_command.begin(), {DTRAIN_TEST_AGENT, "agent"});
  return worker_command;
}
inline std::vector<std::string> agent_with_shell(const std::string& script) {
  return agent_with({"/bin/sh", "-c", script});
}
inline std::vector<std::string> agent_with_worker() { return agent_with({DTRAIN_TEST_AGENT, "worker"}); }

// Empty: it has ended meanwhile.
inline std::string command_line_of(pid_t process) {
  try {
    return read_file("/proc/" + std::to_string(process) + "/cmdline");
  } catch (const Error&) {
    return {};
  }
}

class World {
 public:
  explicit World(std::vector<std::string> agent_command, elastic::NetworkAgentPoolOptions options = {}) {
    std::string name = testing::TempDir() + "dtrain-launch-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    options.job_folder = folder_;
    options.grace = std::chrono::milliseconds(300);  // its workers have nothing to save
    if (options.token.empty()) options.token = to_hex(unpredictable_bytes(32));
    token_ = options.token;
    mark_ = "DTRAIN_TEST_WORLD=" + to_hex(unpredictable_bytes(8));
    if (!options.environment) options.environment = {"PATH=/usr/bin:/bin", mark_};
    options.on_output = [this](const std::string& host, int slot, OutputStream, std::string_view line) {
      const std::lock_guard lock(mutex_);
      output_.push_back(host + "." + std::to_string(slot) + " " + std::string(line));
    };
    loop_ = std::make_unique<net::Loop>();
    launcher_ = std::make_unique<LocalLauncher>(LocalLauncherOptions{.command = std::move(agent_command)});
    options_ = options;
    make_agent_pool();
    thread_ = std::thread([this] { loop_->run(); });
  }

  ~World() {
    drop_agent_pool();
    launcher_ = nullptr;
    loop_->stop();
    thread_.join();
    loop_ = nullptr;
    std::filesystem::remove_all(folder_);
  }

  // Calls on the loop's thread, as the agent pool wants it.
  template <typename Act>
  void act(const Act& act) {
    on_loop([&] { act(*agent_pool_); });
  }
  void drop_agent_pool() {
    on_loop([&] { agent_pool_ = nullptr; });
  }
  // Another coordinator, one term later, which these agents find in the folder; what they report.
  std::vector<elastic::HostReport> take_over(const std::vector<elastic::VoterSet>& voters,
                                             std::chrono::milliseconds wait = 10s,
                                             const std::vector<std::string>& granted_by = {},
                                             std::chrono::milliseconds quiet = 10s) {
    std::promise<std::vector<elastic::HostReport>> reports;
    ++options_.term;
    on_loop([&] {
      make_agent_pool();
      const elastic::ElectionResult election{
          .term = options_.term, .voter_sets = voters, .tiebreakers = {}, .granted_by = granted_by};
      agent_pool_->collect_agents(election, {.wait = wait, .quiet = quiet},
                                  [&](auto gathered) { reports.set_value(std::move(gathered)); });
      const elastic::Leader leader{options_.term, {agent_pool_->address(), agent_pool_->port()}};
      write_file_atomic(folder_ / "leader.json", elastic::to_json(leader).dump());
    });
    return reports.get_future().get();
  }
  void start_host(const std::string& name) {
    act([&](auto& agent_pool) { agent_pool.start_host({.name = name, .user = "", .host = name}); });
  }
  void start_worker(const std::string& host, int slot, elastic::WorkerId worker) {
    act([&](auto& agent_pool) { agent_pool.start_worker(host, slot, worker); });
  }

  // The next event of this kind; others before it are dropped.
  template <typename Event>
  Event next(std::chrono::milliseconds deadline = 60s) {
    std::unique_lock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + deadline;
    for (;;) {
      while (next_ < events_.size()) {
        if (auto* event = std::get_if<Event>(&events_[next_++])) return *event;
      }
      if (wake_.wait_until(lock, until) == std::cv_status::timeout) throw std::runtime_error("the event did not come");
    }
  }
  bool printed(const std::string& line) {
    const std::lock_guard lock(mutex_);
    return std::find(output_.begin(), output_.end(), line) != output_.end();
  }
  // What the lines of this log say, without their times.
  std::string log(const std::string& name) const {
    constexpr std::size_t kTime = std::string_view("2026-01-31T23:59:59.123456Z ").size();
    const std::string whole = read_file(folder_ / "logs" / name);
    std::string text;
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t end = std::min(whole.find('\n', at), whole.size() - 1) + 1;
      text += whole.substr(at, end - at).substr(kTime);
      at = end;
    }
    return text;
  }
  // Workers and all that they started, whoever adopted it.
  std::vector<pid_t> worker_processes() const { return processes_marked(mark_); }
  std::vector<pid_t> agents() const {
    std::vector<pid_t> found;
    for (pid_t process : descendants_of(::getpid())) {
      if (command_line_of(process).find(std::string("\0agent\0", 7)) != std::string::npos) found.push_back(process);
    }
    return found;
  }

  const Path& folder() const { return folder_; }
  const std::string& token() const { return token_; }
  std::uint16_t port() const { return agent_pool_->port(); }
  net::Loop& loop() { return *loop_; }

 private:
  template <typename Work>
  void on_loop(const Work& work) {
    std::promise<void> done;
    loop_->post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  void make_agent_pool() {
    agent_pool_ = nullptr;
    agent_pool_ = std::make_unique<elastic::NetworkAgentPool>(*loop_, *launcher_, options_,
                                                              [this](elastic::AgentPoolEvent event) {
                                                                const std::lock_guard lock(mutex_);
                                                                events_.push_back(std::move(event));
                                                                wake_.notify_all();
                                                              });
  }

  Path folder_;
  elastic::NetworkAgentPoolOptions options_;
  std::string token_, mark_;
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<LocalLauncher> launcher_;
  std::unique_ptr<elastic::NetworkAgentPool> agent_pool_;
  std::thread thread_;
  std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  std::vector<elastic::AgentPoolEvent> events_;
  std::size_t next_ = 0;
  std::vector<std::string> output_;
};

}  // namespace dtrain::launcher
