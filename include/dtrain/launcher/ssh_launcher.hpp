// Starts agents on other machines over ssh. The join document goes through the standard input of the command; once the
// agent has joined, the job no longer depends on the ssh connection.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/agent_pool.hpp>
#include <dtrain/launcher/sync.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::launcher {

struct SshLauncherOptions {
  net::SshOptions ssh;  // `stop` is set by the launcher
  // true: each host gets this very program. A bundle is copied to hosts that lack it; any other program must have the
  // same path and content there. false: the program at the same path is used as it is.
  bool sync_binary = true;
  // A folder of this machine that is copied to each host before its agent starts, as by sync_tree(): only differences
  // are sent. Empty: none. Each host gets the files that were there after its start() was called.
  Path copy_from{};
  LeftOut not_copied{};
  std::string copy_to{};
  // Numeric address where hosts reach a coordinator that listens on all addresses of this machine. Empty: the local end
  // of the host's ssh connection, then the other addresses.
  std::string announce;
  int parallel = 32;                                       // hosts in parallel
  std::chrono::milliseconds join_deadline{30'000};         // from the start of the agent to its report that it joined
  std::function<void(const std::string& line)> on_note{};  // lines for the user, from any thread; may be empty
};

class SshLauncher final : public elastic::AgentLauncher {
 public:
  explicit SshLauncher(SshLauncherOptions options);
  // Cancels starts in progress, within about a second; running agents go on.
  ~SshLauncher() override;
  SshLauncher(const SshLauncher&) = delete;

  void start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Starts a single agent. Blocks; throws the error of the start.
void start_agent_over_ssh(const elastic::HostLine& host, const elastic::AgentOrder& join,
                          const SshLauncherOptions& options);

// The error with its hint on one line, without the name of the host.
elastic::StartFailure start_failure(const std::string& host, const Error& error);

}  // namespace dtrain::launcher
