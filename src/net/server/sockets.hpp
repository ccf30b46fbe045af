// TCP sockets by numeric address, closed on exec and never blocking. Everything that a connection of ours needs to
// notice a silent peer is set here.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::net {

// kAnyAddress: at all addresses of the machine, IPv4 and IPv6. Port 0: any free one. Throws Error.
FileDescriptor listen_on(const std::string& address, std::uint16_t port = 0);
// Throws RemoteError: refused, unreachable, no answer before the deadline, no port below 1024 to be had.
FileDescriptor connect_to(const std::string& address, std::uint16_t port, std::chrono::milliseconds deadline,
                          bool from_privileged_port = false);
// The next connection that waits, or none. A connection that was reset meanwhile, and a lack of descriptors, are none.
FileDescriptor accept_from(int listening);

// Small messages at once, and a peer whose machine is gone is given up after about 20 s. No effect on other sockets.
void prepare_control_socket(int socket);

}  // namespace dtrain::net
