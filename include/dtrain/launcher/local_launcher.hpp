// Starts agents as child processes on this machine: every line of the host file is a host of its own, whatever its
// name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dtrain/elastic/agent_pool.hpp>

namespace dtrain::launcher {

class LocalLauncher final : public elastic::AgentLauncher {
 public:
  // `command` starts an agent; empty: this program's own `agent`. The constructor makes this process adopt orphans, so
  // that it can end what a killed agent leaves behind.
  explicit LocalLauncher(std::vector<std::string> command = {});
  // Ends the agents that still run, first with SIGTERM, and everything that they started. Takes up to 5 s.
  ~LocalLauncher() override;
  LocalLauncher(const LocalLauncher&) = delete;

  void start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::launcher
