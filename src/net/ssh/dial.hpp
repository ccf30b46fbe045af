// A TCP connection to a host by its name.
#pragma once

#include <chrono>
#include <string>

#include <dtrain/base/files.hpp>

#include "patience.hpp"

namespace dtrain::net::ssh {

// Non-blocking, with keep-alive: a peer that acknowledges nothing for `silence` is an error of the socket. Every
// address of the name is tried. RemoteError begins with `name`.
FileDescriptor dial(const std::string& name, const std::string& host, int port, std::chrono::milliseconds silence,
                    const Patience& patience);

}  // namespace dtrain::net::ssh
