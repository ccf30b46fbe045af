#include "tunnel.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/open_files.hpp>

namespace dtrain::net::ssh {
namespace {

constexpr std::size_t kTunnelPiece = 32 << 10, kMostKept = 256 << 10;

bool is_for_later(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

Tunnel::Tunnel(std::shared_ptr<void> outer, std::unique_ptr<Connection> hop, const std::string& host, int port,
               const Patience& patience)
    : outer_(std::move(outer)), hop_(std::move(hop)) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(fmt::format("cannot make a pair of sockets: {}", std::strerror(errno)),
                hint_without_descriptors(errno));
  }
  near_end_ = FileDescriptor(ends[0]);
  far_end_ = FileDescriptor(ends[1]);
  hop_->begin_events();
  channel_.emplace(*hop_, host, port, patience);
  thread_ = std::jthread([this](const std::stop_token& done) { carry(done); });
}

Tunnel::~Tunnel() {
  thread_ = {};  // asks it to stop and waits for it
}

// Bytes that one side gave and the other does not take yet stay here, and then the first side is not read. libssh's own
// connectors drop them when a channel's window is full.
void Tunnel::carry(const std::stop_token& done) {
  while (!done.stop_requested() && !hop_->is_lost() && (!channel_->has_ended() || !inward_.empty())) {
    wait();
    if (!read_socket()) break;
    send_outward();
    if (inward_.size() < kMostKept) hop_->pump_now();
    inward_ += channel_->take_output();
    if (!write_socket()) break;
  }
  ::shutdown(far_end_.get(), SHUT_RDWR);
}

void Tunnel::wait() const {
  const short reads = outward_.size() < kMostKept ? POLLIN : 0;
  const short writes = inward_.empty() ? 0 : POLLOUT;
  pollfd entries[] = {{far_end_.get(), static_cast<short>(reads | writes), 0},
                      {hop_->socket(), inward_.size() < kMostKept ? hop_->poll_events() : short{0}, 0}};
  ::poll(entries, std::size(entries), static_cast<int>(kLook.count()));
}

bool Tunnel::read_socket() {
  if (outward_.size() >= kMostKept) return true;
  char piece[kTunnelPiece];
  const ssize_t size = ::recv(far_end_.get(), piece, sizeof piece, MSG_DONTWAIT);
  if (size > 0) outward_.append(piece, static_cast<std::size_t>(size));
  return size > 0 || (size < 0 && is_for_later(errno));
}

void Tunnel::send_outward() {
  std::string_view rest = outward_;
  channel_->send(rest);
  outward_.erase(0, outward_.size() - rest.size());
}

bool Tunnel::write_socket() {
  if (inward_.empty()) return true;
  const ssize_t size = ::send(far_end_.get(), inward_.data(), inward_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (size < 0) return is_for_later(errno);
  inward_.erase(0, static_cast<std::size_t>(size));
  return true;
}

}  // namespace dtrain::net::ssh
