// What a file in the format of ssh_config(5) says of one host, as far as dtrain follows it: see SshOptions::config.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::net::ssh {

struct HostConfig {
  std::string host_name;  // empty: the alias itself
  std::string user;       // empty: not said
  int port = 0;           // 0: not said
  std::vector<Path> identities;
  bool identities_only = false;
  std::string jump;  // "user@host:port,..." in the order of travel; empty: none
};

// For each keyword the first value counts, identities add up. A missing file says nothing. UsageError names the file
// and line of a value that cannot be meant; Error: a file that cannot be read.
HostConfig read_config(const Path& file, const std::string& alias);

}  // namespace dtrain::net::ssh
