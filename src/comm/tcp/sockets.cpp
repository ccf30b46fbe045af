#include "sockets.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/net/socket_address.hpp>
#include <dtrain/net/stream.hpp>

namespace dtrain::comm::tcp {
namespace {

using net::SocketAddress;
constexpr int kBacklog = 512;
constexpr std::chrono::milliseconds kLook = std::chrono::milliseconds(20);  // for `cancelled`

struct NearName {
  sockaddr_un name{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

// A name in Linux's abstract space: it needs no file, and ends with its socket. None where it does not fit: a peer
// names its own address, which need not be one.
std::optional<NearName> near_name(const PeerAddress& address) {
  const std::string name = fmt::format("dtrain-data {} {}", address.address, address.port);
  NearName result;
  if (name.size() + 1 > sizeof result.name.sun_path) return std::nullopt;
  result.name.sun_family = AF_UNIX;
  std::memcpy(result.name.sun_path + 1, name.data(), name.size());
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

FileDescriptor make_socket(int family, int flags) {
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!socket) throw Error(fmt::format("cannot make a socket: {}", std::strerror(errno)));
  return socket;
}

void set(int socket, int level, int option, int value) { ::setsockopt(socket, level, option, &value, sizeof value); }

// Whether the connection that was begun is there; errno says why not.
bool wait_for_connection(int socket, Clock::time_point deadline, const std::function<bool()>& cancelled) {
  while (!cancelled() && Clock::now() < deadline) {
    pollfd entry{socket, POLLOUT, 0};
    if (::poll(&entry, 1, static_cast<int>(kLook.count())) <= 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0;
  }
  return false;
}

}  // namespace

FileDescriptor listen_on(const std::string& address) {
  const SocketAddress local(address, 0);
  FileDescriptor socket = make_socket(local.family(), SOCK_NONBLOCK);
  if (::bind(socket.get(), local.get(), local.size()) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    throw Error(fmt::format("cannot listen on {}: {}", address, std::strerror(errno)),
                "give an address of this machine");
  }
  return socket;
}

PeerAddress address_of(int listener) {
  const auto own = SocketAddress::own_of(listener);
  return {own.address(), own.port()};
}

FileDescriptor listen_near(const PeerAddress& address) {
  const std::optional<NearName> name = near_name(address);
  if (!name) return {};
  FileDescriptor socket = make_socket(AF_UNIX, SOCK_NONBLOCK);
  if (::bind(socket.get(), name->get(), name->size) != 0 || ::listen(socket.get(), kBacklog) != 0) return {};
  return socket;
}

FileDescriptor accept_from(std::span<const int> listeners, std::chrono::milliseconds patience) {
  std::vector<pollfd> entries;
  for (const int listener : listeners) entries.push_back({listener, POLLIN, 0});
  errno = 0;
  if (::poll(entries.data(), entries.size(), static_cast<int>(patience.count())) <= 0) return {};
  const auto called = std::ranges::find_if(entries, [](const pollfd& entry) { return entry.revents != 0; });
  return FileDescriptor(::accept4(called->fd, nullptr, nullptr, SOCK_CLOEXEC));
}

FileDescriptor connect_near(const PeerAddress& to) {
  const std::optional<NearName> name = near_name(to);
  if (!name) return {};
  FileDescriptor socket = make_socket(AF_UNIX, SOCK_NONBLOCK);
  const bool connected = ::connect(socket.get(), name->get(), name->size) == 0;
  return connected && net::is_same_user(socket.get()) ? std::move(socket) : FileDescriptor();
}

bool is_near(int socket) {
  int family = 0;
  socklen_t size = sizeof family;
  return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX;
}

FileDescriptor connect_to(const PeerAddress& to, Clock::time_point deadline, const std::function<bool()>& cancelled) {
  const SocketAddress remote(to.address, to.port);
  FileDescriptor socket = make_socket(remote.family(), SOCK_NONBLOCK);
  if (::connect(socket.get(), remote.get(), remote.size()) == 0) return socket;
  if (errno == EINPROGRESS && wait_for_connection(socket.get(), deadline, cancelled)) return socket;
  return {};
}

bool send_file(int socket, int file) {
  char byte = 0;
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof file)> control{};
  if (file >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

ReceivedFile receive_file(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  int file = -1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof file)> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    return {.state = ReceivedFile::State::not_yet};
  }
  if (got <= 0) return {.state = ReceivedFile::State::ended};
  if (message.msg_flags & MSG_CTRUNC) return {.state = ReceivedFile::State::no_descriptor};
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&file, CMSG_DATA(header), sizeof file);
  }
  return {.state = ReceivedFile::State::came, .file = FileDescriptor(file)};
}

void prepare_for_data(int socket, std::chrono::milliseconds patience) {
  const auto seconds = static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(patience.count() / 1000, 3, 3600));
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, seconds / 3));
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 3));
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  // A peer that computes for long reads nothing either: only a machine that is silent for longer than that is gone.
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 4 * seconds * 1000);
}

}  // namespace dtrain::comm::tcp
