// Proof of identity: the agent, where keys that files name come first, then key files.
#pragma once

#include <string>
#include <vector>

#include "connection.hpp"

namespace dtrain::net::ssh {

struct Identity {
  std::string user;                // who to be there
  int port = 22;                   // for messages
  std::string agent_socket;        // empty: no agent
  bool only_named_keys = false;    // of the agent's
  std::vector<Path> keys;          // private, tried in this order; missing ones are passed over
  std::vector<Path> certificates;  // tried with the keys that they are for, besides KEY-cert.pub
};

// SshLoginRefused says what was tried.
void authenticate(Connection& connection, const Identity& identity, const Patience& patience);

// Whether authenticate() has the private half of this public key (its bytes).
bool has_proof(const Identity& identity, const std::string& key, const Patience& patience);

}  // namespace dtrain::net::ssh
