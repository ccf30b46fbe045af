// The hosts of a command and how it reaches them: the same options for every command that uses ssh.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/launcher/fan_out.hpp>

#include "config/option_values.hpp"

namespace dtrain::job {

struct SshAccess {
  std::optional<Path> hostfile;
  std::string cluster;  // its nodes replace those of the file
  int parallel = 32;
  config::Seconds connect_timeout{15};
  std::optional<Path> config, identity, known_hosts;
  bool accept_new_hosts = false;
};

void bind(config::OptionSet& set, SshAccess& access);

struct ChosenHosts {
  std::vector<std::string> names;  // as in the file: names in messages
  std::vector<net::SshTarget> targets;
};
// Throws UsageError if there is no file, no host in it, or an invalid line.
ChosenHosts read_hosts(const SshAccess& access);
launcher::FanOutOptions fan_out_options(const SshAccess& access, std::stop_token stop);

}  // namespace dtrain::job
