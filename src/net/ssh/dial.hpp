// A TCP connection to a host by its name.
#pragma once

#include <chrono>
#include <string>

#include <dtrain/base/files.hpp>

#include "patience.hpp"

namespace dtrain::net::ssh {

struct DialPlace {
  std::string name;  // RemoteErrors begin with it
  std::string host;
  int port = 22;
  int family = 0;  // AF_INET, AF_INET6; 0: either
};

// Non-blocking, with keep-alive: a peer that acknowledges nothing for `silence` is an error of the socket. Every
// address of the host is tried.
FileDescriptor dial(const DialPlace& place, std::chrono::milliseconds silence, const Patience& patience);

}  // namespace dtrain::net::ssh
