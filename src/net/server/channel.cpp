#include <dtrain/net/channel.hpp>

#include <fcntl.h>
#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "connection.hpp"
#include "pending_handshake.hpp"
#include "sockets.hpp"

namespace dtrain::net {

std::shared_ptr<Channel> connect_channel(Loop& loop, const std::string& address, std::uint16_t port,
                                         const std::string& secret, std::chrono::milliseconds deadline) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  FileDescriptor socket = connect_to(address, port, deadline);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  const std::string hello = prove_and_verify(socket.get(), Role::connected, secret, kControlHello, left);
  if (hello != kControlHello) {
    throw RemoteError(fmt::format("{} port {} is another kind of port of this job", address, port));
  }
  return make_channel(loop.state(), std::move(socket));
}

std::shared_ptr<Channel> adopt_channel(Loop& loop, FileDescriptor socket) {
  ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  return make_channel(loop.state(), std::move(socket));
}

}  // namespace dtrain::net
