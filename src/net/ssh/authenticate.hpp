// Proof of identity: agent, then key files.
#pragma once

#include <string>
#include <vector>

#include "connection.hpp"

namespace dtrain::net::ssh {

struct Identity {
  std::string user;          // who to be there
  std::string agent_socket;  // empty: no agent
  std::vector<Path> keys;    // private, tried in this order; missing ones are passed over
};

// RemoteError says what was tried.
void authenticate(Connection& connection, const Identity& identity, const Patience& patience);

}  // namespace dtrain::net::ssh
