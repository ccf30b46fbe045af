// Starts agents as child processes on this machine: every line of the host file is a host of its own, whatever its
// name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/elastic/agent_pool.hpp>
#include <dtrain/elastic/voters.hpp>

namespace dtrain::launcher {

struct LocalLauncherOptions {
  std::vector<std::string> command{};  // starts an agent; empty: this program's own `agent`
  // Called when the launcher ends. true: another coordinator runs the job now, so agents must live on. Empty: agents
  // end with this process, however it ends. Agents that may outlive it write their own messages to agent_log().
  std::function<bool()> job_goes_on{};
  // Agents that an earlier coordinator of the job started, and that may run.
  std::vector<elastic::Voter> inherited{};
};

class LocalLauncher final : public elastic::AgentLauncher {
 public:
  // Makes this process adopt orphans, so that it can end what a killed agent leaves behind.
  explicit LocalLauncher(LocalLauncherOptions options = {});
  // Unless the job goes on under another coordinator, ends the agents that still run, first with SIGTERM, and
  // everything that they and the inherited agents started. Takes up to 5 s.
  ~LocalLauncher() override;
  LocalLauncher(const LocalLauncher&) = delete;

  void start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::launcher
