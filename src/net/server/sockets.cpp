#include "sockets.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <dtrain/base/error.hpp>
#include <dtrain/base/releaser.hpp>

namespace dtrain::net {
namespace {

using Clock = std::chrono::steady_clock;
using AddressList = std::unique_ptr<addrinfo, Releaser<::freeaddrinfo>>;

AddressList parse_address(const std::string& address, std::uint16_t port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) {
    throw UsageError(fmt::format("'{}' is no numeric IP address", address));
  }
  return AddressList(found);
}

FileDescriptor open_socket(const addrinfo& address) {
  return FileDescriptor(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
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

SocketName name_of(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return {text, ntohs(v4.sin_port)};
  }
  if (storage.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    ::inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  }
  return {text, ntohs(v6.sin6_port)};
}

}  // namespace

FileDescriptor listen_on(const std::string& address, std::uint16_t port) {
  const AddressList list = parse_address(address, port);
  FileDescriptor socket = open_socket(*list);
  if (socket && port != 0) set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (!socket || ::bind(socket.get(), list->ai_addr, list->ai_addrlen) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    const int error = errno;
    const std::string place = port == 0 ? address : fmt::format("port {} of {}", port, address);
    throw Error(fmt::format("cannot listen on {}: {}", place, std::strerror(error)), "name an address of this machine");
  }
  return socket;
}

FileDescriptor connect_to(const std::string& address, std::uint16_t port, std::chrono::milliseconds deadline,
                          bool from_privileged_port) {
  const auto until = Clock::now() + deadline;
  const AddressList list = parse_address(address, port);
  FileDescriptor socket = open_socket(*list);
  int error = socket ? 0 : errno;
  if (socket && from_privileged_port && ::bindresvport(socket.get(), nullptr) != 0) error = errno;
  if (socket && error == 0 && ::connect(socket.get(), list->ai_addr, list->ai_addrlen) != 0) error = errno;
  if (error == EINPROGRESS || error == EINTR) error = wait_until_connected(socket.get(), until);
  if (error != 0) {
    throw RemoteError(fmt::format("cannot connect to {} port {}: {}", address, port, std::strerror(error)));
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

SocketName local_name(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &size) == 0 ? name_of(storage) : SocketName{};
}

SocketName peer_name(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &size) == 0 ? name_of(storage) : SocketName{};
}

}  // namespace dtrain::net
