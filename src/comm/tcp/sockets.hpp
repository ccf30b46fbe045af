// TCP sockets with numeric addresses, IPv4 or IPv6; names are never looked up. Processes of one machine also meet at a
// Unix socket, which moves the same bytes with a third less work: no segments, checksums and acknowledgements.
#pragma once

#include <chrono>
#include <functional>
#include <span>

#include <dtrain/base/files.hpp>
#include <dtrain/comm/mesh.hpp>

namespace dtrain::comm::tcp {

using Clock = std::chrono::steady_clock;

// On a port that the system chooses. Throws Error.
FileDescriptor listen_on(const std::string& address);
PeerAddress address_of(int listener);

// The Unix socket that goes with a listener's address; only processes of the same network namespace see it. None when
// its name is taken or too long.
FileDescriptor listen_near(const PeerAddress& address);

// The next connection to one of the listeners, or none when none came within `patience` or they were shut down.
FileDescriptor accept_from(std::span<const int> listeners, std::chrono::milliseconds patience);

// By way of listen_near(): at once, or none. None also when the process that listens there runs as another user.
FileDescriptor connect_near(const PeerAddress& to);
bool is_near(int socket);  // whether it is a Unix socket
// None when no peer accepts by the deadline or before `cancelled` says so.
FileDescriptor connect_to(const PeerAddress& to, Clock::time_point deadline, const std::function<bool()>& cancelled);

// Between processes of this machine, by a Unix socket: one byte, and with it an open file, unless that is -1. false:
// the connection is broken.
bool send_file(int socket, int file);
// What send_file() sent; does not block.
struct ReceivedFile {
  enum class State { came, not_yet, ended, no_descriptor } state = State::ended;
  FileDescriptor file{};  // may be none
};
ReceivedFile receive_file(int socket);

// No delays, and an end by the kernel when the peer's machine says nothing for so long.
void prepare_for_data(int socket, std::chrono::milliseconds patience);

}  // namespace dtrain::comm::tcp
