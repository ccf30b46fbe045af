#include "sockets.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/open_files.hpp>
#include <dtrain/net/addresses.hpp>
#include <dtrain/net/socket_address.hpp>

namespace dtrain::net {
namespace {

using Clock = std::chrono::steady_clock;
FileDescriptor open_socket(const SocketAddress& address) {
  return FileDescriptor(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void set_option(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

// 0 once connected, else the error.
int wait_until_connected(int socket, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return ETIMEDOUT;
    pollfd entry{socket, POLLOUT, 0};
    if (::poll(&entry, 1, static_cast<int>(std::min<long long>(left, 60'000))) > 0) break;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

// None, with errno, when that address or port cannot be had.
FileDescriptor listening_socket(const SocketAddress& address) {
  FileDescriptor socket = open_socket(address);
  if (!socket) return {};
  if (address.port() != 0) set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family() == AF_INET6) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket.get(), address.get(), address.size()) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) return {};
  return socket;
}

// One socket for IPv6 and IPv4; for IPv4 alone on a machine without IPv6.
FileDescriptor listen_everywhere(std::uint16_t port) {
  constexpr const char* kAnyOfBoth = "::";
  FileDescriptor socket = listening_socket({kAnyOfBoth, port});
  if (socket || errno == EADDRINUSE || errno == EACCES) return socket;
  return listening_socket({kAnyAddress, port});
}

}  // namespace

FileDescriptor listen_on(const std::string& address, std::uint16_t port) {
  FileDescriptor socket = address == kAnyAddress ? listen_everywhere(port) : listening_socket({address, port});
  if (socket) return socket;
  const int error = errno;
  const std::string place = port == 0 ? address : fmt::format("port {} of {}", port, address);
  const std::string lack = hint_without_descriptors(error);
  throw Error(fmt::format("cannot listen on {}: {}", place, std::strerror(error)),
              lack.empty() ? "name an address of this machine" : lack);
}

FileDescriptor connect_to(const std::string& address, std::uint16_t port, std::chrono::milliseconds deadline,
                          bool from_privileged_port) {
  const auto until = Clock::now() + deadline;
  const SocketAddress remote(address, port);
  FileDescriptor socket = open_socket(remote);
  int error = socket ? 0 : errno;
  if (socket && from_privileged_port && ::bindresvport(socket.get(), nullptr) != 0) error = errno;
  if (socket && error == 0 && ::connect(socket.get(), remote.get(), remote.size()) != 0) error = errno;
  if (error == EINPROGRESS || error == EINTR) error = wait_until_connected(socket.get(), until);
  if (error != 0) {
    throw RemoteError(fmt::format("cannot connect to {} port {}: {}", address, port, std::strerror(error)),
                      hint_without_descriptors(error));
  }
  return socket;
}

FileDescriptor accept_from(int listening) {
  return FileDescriptor(::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

void prepare_control_socket(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
}

}  // namespace dtrain::net
