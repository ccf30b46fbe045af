// Agents on the nodes of a cluster, started by the processes that wait there: the head passes the order on. Nothing
// needs ssh, and no node can log in to another.
#pragma once

#include <memory>
#include <string>

#include <dtrain/elastic/crew.hpp>
#include <dtrain/launcher/agent_registry.hpp>

namespace dtrain::launcher {

class RegistryLauncher final : public elastic::AgentLauncher {
 public:
  // `announce`: numeric address where nodes reach the coordinator; empty: all of this machine's.
  RegistryLauncher(AgentRegistry registry, std::string announce);
  // Starts that are under way are given up; agents that run go on.
  ~RegistryLauncher() override;
  RegistryLauncher(const RegistryLauncher&) = delete;

  void start(const elastic::HostLine& host, const elastic::AgentJoin& join, Failed failed) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::launcher
