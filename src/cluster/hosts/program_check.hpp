// Whether this program can run on another machine, asked over ssh.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <dtrain/net/ssh.hpp>

namespace dtrain::cluster {

// What a command prints, and its exit.
struct Said {
  net::SshExit exit{};
  std::string output{}, errors{};  // the first 2 KiB of the errors
};
Said said_by(net::SshSession& session, net::SshCommand command, std::chrono::milliseconds deadline);
std::string end_text(const net::SshExit& exit);  // "ended with 1", "was killed by SIGKILL"

// Both throw RemoteError. The kind is asked of the shell, before any program is brought.
void check_kind(net::SshSession& session);
void check_starts(net::SshSession& session, const std::vector<std::string>& program);

}  // namespace dtrain::cluster
