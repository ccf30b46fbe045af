// TCP sockets with numeric addresses, IPv4 or IPv6. Names are never looked up.
#pragma once

#include <chrono>
#include <functional>

#include <dtrain/base/files.hpp>
#include <dtrain/comm/mesh.hpp>

namespace dtrain::comm::tcp {

using Clock = std::chrono::steady_clock;

// On a port that the system chooses. Throws Error.
FileDescriptor listen_on(const std::string& address);
PeerAddress address_of(int listener);

// The next connection, or none when none came within `patience` or the listener was shut down.
FileDescriptor accept_from(int listener, std::chrono::milliseconds patience);

// None when nobody accepts by the deadline or before `cancelled` says so.
FileDescriptor connect_to(const PeerAddress& to, Clock::time_point deadline, const std::function<bool()>& cancelled);

// No delays, and an end by the kernel when the peer's machine says nothing for so long.
void prepare_for_data(int socket, std::chrono::milliseconds patience);

}  // namespace dtrain::comm::tcp
