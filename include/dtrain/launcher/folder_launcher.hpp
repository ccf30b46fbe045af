// Starts agents on hosts that wait in the job folder, where `dtrain hosts join` runs: it gives each of them an order in
// a file. The coordinator reaches no host itself; the hosts see the folder, and connect to the coordinator.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/elastic/agent_pool.hpp>

namespace dtrain::launcher {

struct FolderLauncherOptions {
  Path job_folder;
  std::string announce{};                           // as in StarterLauncherOptions
  std::chrono::milliseconds take_deadline{30'000};  // from the order to the host's taking it
};

class FolderLauncher final : public elastic::AgentLauncher {
 public:
  explicit FolderLauncher(FolderLauncherOptions options);
  // Takes back orders that no host took; running agents go on.
  ~FolderLauncher() override;
  FolderLauncher(const FolderLauncher&) = delete;

  void start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::launcher
