// Is this the host that it was before? See SshOptions::known_hosts.
#pragma once

#include <dtrain/net/ssh.hpp>

#include "config.hpp"
#include "connection.hpp"

namespace dtrain::net::ssh {

struct HostKeyRules {
  Path add_to;              // empty: no new key is accepted
  std::vector<Path> files;  // all that are compared with
  bool accept_new = false;
};
HostKeyRules host_key_rules(const HostConfig& config, const SshOptions& options);

// The check of one host's key against all files at once.
class HostKeyCheck {
 public:
  // Before the connection is made, so that libssh prefers the kinds of key that are known. `host` is the name of the
  // keys in the files, with `port` unless it is 22.
  HostKeyCheck(ssh_session session, HostKeyRules rules, std::string host, int port);
  // After key exchange. SshHostKeyChanged: a changed or revoked key. RemoteError: a new one that may not be accepted.
  // Adds an accepted one.
  void check(Connection& connection) const;

 private:
  std::string forget_command() const;
  [[noreturn]] void refuse_new(const Connection& connection) const;

  HostKeyRules rules_;
  std::string host_;
  int port_;
  FileDescriptor known_;  // what all files say
};

}  // namespace dtrain::net::ssh
