// Starts agents in containers of Hadoop YARN: one application for each agent, submitted through the ResourceManager's
// REST API. An application's master must speak Hadoop's RPC to the ResourceManager or is ended after ten minutes, so
// the master is Hadoop's DistributedShell, which every Hadoop has; it runs the agent in a container of its own. YARN
// chooses the machine. Tested against a stand-in of the ResourceManager, not against a real YARN.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/elastic/agent_pool.hpp>

namespace dtrain::launcher {

struct YarnLauncherOptions {
  std::string resource_manager;  // "http://rm:8088"
  std::string user;              // sent as user.name, which clusters without Kerberos accept
  std::string queue{};           // empty: YARN's default
  int memory = 4096;             // MiB, of an agent's container
  int cores = 1;                 // of the container
  std::string announce{};        // as in StarterLauncherOptions
};

class YarnLauncher final : public elastic::AgentLauncher {
 public:
  explicit YarnLauncher(YarnLauncherOptions options);
  // Kills the applications that do not end with their agents in time; takes up to 10 s.
  ~YarnLauncher() override;
  YarnLauncher(const YarnLauncher&) = delete;

  void start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::launcher
