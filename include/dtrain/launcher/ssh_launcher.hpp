// Agents on other machines, started over ssh. What the agent needs to know goes through the command's standard input;
// once it joined, nothing of the job depends on the ssh connection any more.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/crew.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::launcher {

struct SshLauncherOptions {
  net::SshOptions ssh;  // its `stop` is the launcher's own
  // See that each host has this very program: a bundle is copied to hosts that lack it, any other program must be at
  // the same path with the same content. false: it is at the same path, whatever it is.
  bool sync_binary = true;
  // A folder of this machine whose content each host gets before its agent starts, as sync_tree() does it: only what
  // differs. Empty: none. Read once, when the first host needs it.
  Path copy_from{};
  std::vector<std::string> not_copied{};  // patterns, as of read_tree()
  std::string copy_to{};
  // Numeric address where hosts reach a coordinator that listens on all of this machine's. Empty: this end of their ssh
  // connection, then the others.
  std::string announce;
  int parallel = 32;                                       // hosts at once
  std::chrono::milliseconds join_deadline{30'000};         // from the agent's start to its word that it joined
  std::function<void(const std::string& line)> on_note{};  // lines for people, from any thread; may be empty
};

class SshLauncher final : public elastic::AgentLauncher {
 public:
  explicit SshLauncher(SshLauncherOptions options);
  // Starts that are under way are given up, within about a second; agents that run go on.
  ~SshLauncher() override;
  SshLauncher(const SshLauncher&) = delete;

  void start(const elastic::HostLine& host, const elastic::AgentJoin& join, Failed failed) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Blocks; throws what went wrong. For whoever starts a single agent.
void start_agent_over_ssh(const elastic::HostLine& host, const elastic::AgentJoin& join,
                          const SshLauncherOptions& options);

// The error with its hint, for a place that has one line and names the host itself.
std::string reason_of(const std::string& host, const Error& error);

}  // namespace dtrain::launcher
