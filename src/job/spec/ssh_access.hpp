// Which hosts a command works on, and how it reaches them: the same options for every command that goes over ssh.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/launcher/fan_out.hpp>

#include "config/option_set.hpp"

namespace dtrain::job {

struct SshAccess {
  std::optional<Path> hostfile;
  std::string cluster;  // its nodes, in place of those of the file
  int parallel = 32;
  double connect_timeout = 15;  // seconds
  std::optional<Path> config, identity, known_hosts;
  bool accept_new_hosts = false;
};

void bind(config::OptionSet& set, SshAccess& access);

struct ChosenHosts {
  std::vector<std::string> names;  // as the file says: what messages call them
  std::vector<net::SshTarget> targets;
};
// UsageError: no file, nothing in it, or a line that means nothing.
ChosenHosts read_hosts(const SshAccess& access);
launcher::FanOutOptions fan_out_options(const SshAccess& access, std::stop_token stop);

}  // namespace dtrain::job
