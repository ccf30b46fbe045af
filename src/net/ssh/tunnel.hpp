// A socket whose other end is a port that another host reaches for us: one hop of a ProxyJump.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "channel.hpp"
#include "connection.hpp"

namespace dtrain::net::ssh {

class Tunnel {
 public:
  // `hop` is logged in; `outer` carries its bytes, unless it is null. RemoteError: it cannot reach the port, or
  // forwards nothing. A thread of its own carries the bytes until the socket is closed, the hop is lost, or this is
  // destroyed.
  Tunnel(std::shared_ptr<void> outer, std::unique_ptr<Connection> hop, const std::string& host, int port,
         const Patience& patience);
  ~Tunnel();

  FileDescriptor take_socket() { return std::move(near_end_); }

 private:
  void carry(const std::stop_token& done);
  void wait() const;
  bool read_socket();   // false: it is closed
  void send_outward();  // what the channel's window has room for
  bool write_socket();  // false: it is closed

  std::shared_ptr<void> outer_;
  std::unique_ptr<Connection> hop_;
  FileDescriptor near_end_, far_end_;
  std::optional<Channel> channel_;
  std::string inward_, outward_;  // of the thread: from the channel to the socket, and back
  std::jthread thread_;
};

}  // namespace dtrain::net::ssh
