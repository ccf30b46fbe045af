#include "watchdog.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <utility>

namespace dtrain::net::ssh {

Watchdog::Watchdog(int socket, Patience patience)
    : socket_(::fcntl(socket, F_DUPFD_CLOEXEC, 0)),
      patience_(std::move(patience)),
      thread_([this](const std::stop_token& done) { watch(done); }) {}

void Watchdog::watch(const std::stop_token& done) {
  std::unique_lock lock(mutex_);
  while (!patience_.is_over() && !patience_.stop.stop_requested()) {
    const auto look = std::min(Clock::now() + kLook, patience_.until);
    changed_.wait_until(lock, done, look, [] { return false; });
    if (done.stop_requested()) return;
  }
  ::shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace dtrain::net::ssh
