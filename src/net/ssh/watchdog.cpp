#include "watchdog.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/mutex.hpp>

namespace dtrain::net::ssh {

Watchdog::Watchdog(int socket, Patience patience)
    : socket_(::fcntl(socket, F_DUPFD_CLOEXEC, 0)),
      patience_(std::move(patience)),
      thread_([this](const std::stop_token& done) { watch(done); }) {}

void Watchdog::watch(const std::stop_token& done) {
  while (!patience_.is_over() && !patience_.stop.stop_requested()) {
    sleep_unless_stopped(done, std::min<Clock::duration>(kLook, patience_.until - Clock::now()));
    if (done.stop_requested()) return;
  }
  ::shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace dtrain::net::ssh
