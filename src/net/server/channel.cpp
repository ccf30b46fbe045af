#include <dtrain/net/channel.hpp>

#include <fcntl.h>

#include "connection.hpp"
#include "sockets.hpp"

namespace dtrain::net {

std::shared_ptr<Channel> connect_channel(Loop& loop, const std::string& address, std::uint16_t port,
                                         const std::string& secret, std::chrono::milliseconds deadline,
                                         const ConnectOptions& options) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  Stream stream(connect_to(address, port, deadline, options.from_privileged_port), Role::connected,
                {secret, options.purpose});
  shake_hands(stream, until);
  return make_channel(loop.state(), std::move(stream));
}

std::shared_ptr<Channel> adopt_channel(Loop& loop, FileDescriptor socket) {
  ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  return make_channel(loop.state(), Stream(std::move(socket)));
}

}  // namespace dtrain::net
