// Where other machines may reach this one.
#pragma once

#include <string>
#include <vector>

namespace dtrain::net {

// A listener bound to it is reached at all addresses of the machine, IPv4 and IPv6.
constexpr const char* kAnyAddress = "0.0.0.0";

// Whether this numeric address leads to the machine that uses it: 127.0.0.0/8, also as IPv6 writes it, or ::1. False
// for a text that is no address.
bool is_loopback(const std::string& address);
// 0.0.0.0 or ::, which a listener binds to be reached at all addresses of its machine.
bool is_any_address(const std::string& address);
// An IPv6 address that means something only together with a network card: fe80::/10, also with the card: fe80::1%eth0.
bool is_link_local(const std::string& address);
bool is_numeric(const std::string& address);  // an IPv4 or IPv6 address
bool is_ipv4(const std::string& address);     // as four numbers
// As a URL and a "host:port" take it: an IPv6 address stands in brackets.
std::string in_brackets(const std::string& host);
// Numeric addresses of the network cards that are up, IPv4 ones first, without link-local ones of IPv6; the loopback's
// only where there is no other.
std::vector<std::string> own_addresses();
// Numeric address of the other end of a connection; empty for a Unix socket.
std::string peer_address(int socket);
// The name of the network card that has this numeric address; empty: none has.
std::string card_of(const std::string& address);

}  // namespace dtrain::net
