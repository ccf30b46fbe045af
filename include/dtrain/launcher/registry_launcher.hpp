// Starts agents on the nodes of a cluster: the head forwards each request to the process on the node. This needs no
// ssh, and no node can log in to another.
#pragma once

#include <memory>
#include <string>

#include <dtrain/elastic/agent_pool.hpp>
#include <dtrain/launcher/agent_registry.hpp>

namespace dtrain::launcher {

class RegistryLauncher final : public elastic::AgentLauncher {
 public:
  // `announce`: numeric address where nodes reach the coordinator; empty: all addresses of this machine.
  RegistryLauncher(AgentRegistry registry, std::string announce);
  // Cancels starts in progress; running agents go on. Takes up to 10 s where the head does not answer.
  ~RegistryLauncher() override;
  RegistryLauncher(const RegistryLauncher&) = delete;

  void start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::launcher
