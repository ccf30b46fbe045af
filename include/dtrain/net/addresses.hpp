// Where other machines may reach this one.
#pragma once

#include <string>
#include <vector>

namespace dtrain::net {

// A listener bound to it is reached at all IPv4 addresses of the machine.
constexpr const char* kAnyAddress = "0.0.0.0";

// Numeric IPv4 addresses of the network cards that are up; the loopback's only where there is no other.
std::vector<std::string> own_addresses();
// Numeric address of the other end of a connection; empty for a Unix socket.
std::string peer_address(int socket);
// The name of the network card that has this numeric IPv4 address; empty: none has.
std::string card_of(const std::string& address);

}  // namespace dtrain::net
