// Is this the host that it was before? See SshOptions::known_hosts.
#pragma once

#include <dtrain/net/ssh.hpp>

#include "connection.hpp"

namespace dtrain::net::ssh {

// Before the connection is made: which files libssh compares with (it then prefers the kinds of key they hold).
void name_host_key_files(ssh_session session, const SshOptions& options);
// After key exchange. RemoteError: a changed key, or a new one that may not be accepted. Adds an accepted one.
void check_host_key(Connection& connection, const SshOptions& options, const std::string& host, int port);

}  // namespace dtrain::net::ssh
