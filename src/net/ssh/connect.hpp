// From a target to a connection that is logged in, over any hops.
#pragma once

#include <memory>
#include <string>

#include <dtrain/net/ssh.hpp>

#include "connection.hpp"
#include "tunnel.hpp"

namespace dtrain::net::ssh {

struct Connected {
  // What is behind the connection's socket, a Tunnel or a ProxyProcess; null: the network. Outlives the connection.
  std::shared_ptr<void> carrier;
  std::unique_ptr<Connection> connection;
  std::string user;
  std::string local_address, peer_address;  // numeric, of the TCP connection; empty behind a ProxyCommand
};

// One try of everything.
Connected connect(const SshTarget& target, const SshOptions& options, const Patience& patience);

}  // namespace dtrain::net::ssh
