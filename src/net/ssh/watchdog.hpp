// Ends another library's endless wait on a socket.
#pragma once

#include <thread>

#include <dtrain/base/files.hpp>

#include "patience.hpp"

namespace dtrain::net::ssh {

// Shuts the socket down when the patience is over or a stop is asked for, unless it is destroyed before.
class Watchdog {
 public:
  // Works on a copy of the descriptor: the caller's may be closed meanwhile.
  Watchdog(int socket, Patience patience);

 private:
  void watch(const std::stop_token& done);

  FileDescriptor socket_;
  Patience patience_;
  std::jthread thread_;
};

}  // namespace dtrain::net::ssh
