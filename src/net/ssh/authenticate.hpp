// Proof of identity: agent, then key files.
#pragma once

#include <string>
#include <vector>

#include "connection.hpp"

namespace dtrain::net::ssh {

struct Identity {
  std::string user;                // who to be there
  int port = 22;                   // for messages
  std::string agent_socket;        // empty: no agent
  std::vector<Path> keys;          // private, tried in this order; missing ones are passed over
  std::vector<Path> certificates;  // tried with the keys that they are for, besides KEY-cert.pub
};

// RemoteError says what was tried.
void authenticate(Connection& connection, const Identity& identity, const Patience& patience);

}  // namespace dtrain::net::ssh
