// What configuration in the format of ssh_config(5) says about one host: see SshOptions::config.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/net/ssh.hpp>

#include "patience.hpp"

namespace dtrain::net::ssh {

enum class StrictKeys { unsaid, yes, accept_new };

// Empty texts, 0 and nullopt: not said.
struct HostConfig {
  std::string host_name;
  std::string user;
  int port = 0;
  int family = 0;  // AF_INET, AF_INET6
  std::vector<Path> identities, certificates;
  bool identities_only = false;
  std::optional<std::string> agent_socket;  // empty: ask no agent
  std::string jump;                         // "user@host:port,..." in the order of travel
  std::string proxy_command;                // a line for the shell
  std::string host_key_alias;
  StrictKeys strict = StrictKeys::unsaid;
  std::optional<std::vector<Path>> user_known_hosts, global_known_hosts;
  std::map<std::string, std::string> algorithms;  // by keyword in lower case, such as "ciphers"
};

// What an OpenSSH client would do for the target (`ssh -G`), where one is installed, else what read_config() finds in
// the files. UsageError: the client refuses its configuration, or dtrain cannot follow it.
HostConfig effective_config(const SshTarget& target, const SshOptions& options, const Patience& patience);

// The parts of it. For each keyword the first value counts, identities and certificates add up. A missing file says
// nothing. UsageError names a value that cannot be meant, and what dtrain cannot follow; Error: a file that cannot be
// read.
HostConfig read_config(const std::vector<Path>& files, const SshTarget& target);
// `resolved`: the output of `ssh -G` for the target; `defaults`: the same without a configuration.
HostConfig parse_resolved(std::string_view resolved, std::string_view defaults, const SshTarget& target);

}  // namespace dtrain::net::ssh
