#include "socket_moves.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace dtrain::net {
namespace {

Moved after_system_call(ssize_t moved) {
  if (moved > 0) return {.bytes = static_cast<std::size_t>(moved)};
  if (errno == EINTR) return {};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {.state = Moved::State::blocked};
  if (errno == ECONNRESET || errno == EPIPE) return {.state = Moved::State::ended};
  return {.state = Moved::State::broken, .error = std::strerror(errno)};
}

msghdr message_of(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return message;
}

std::size_t size_of(std::span<const iovec> parts) {
  std::size_t size = 0;
  for (const iovec& part : parts) size += part.iov_len;
  return size;
}

}  // namespace

Moved read_from(int socket, std::span<const iovec> parts) {
  msghdr message = message_of(parts);
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT);
  if (got == 0) return {.state = Moved::State::ended};
  Moved moved = after_system_call(got);
  // What was not filled has to wait for the next event.
  if (moved.bytes > 0 && moved.bytes < size_of(parts)) moved.state = Moved::State::blocked;
  return moved;
}

Moved write_to(int socket, std::span<const iovec> parts) {
  if (parts.empty()) return {};
  msghdr message = message_of(parts);
  return after_system_call(::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

}  // namespace dtrain::net
