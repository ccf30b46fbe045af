#include "own_port.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/net/socket_address.hpp>

namespace dtrain::external {

OwnPort::OwnPort(const std::string& address) {
  const net::SocketAddress place(address, 0);
  listener_ = FileDescriptor(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_ || ::bind(listener_.get(), place.get(), place.size()) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    throw Error(fmt::format("{}: cannot listen there for the ranks: {}", address, std::strerror(errno)));
  }
  Pipe pipe = make_pipe();
  ended_ = std::move(pipe.read_end);
  end_ = std::move(pipe.write_end);
  number_ = net::SocketAddress::own_of(listener_.get()).port();
}

}  // namespace dtrain::external
