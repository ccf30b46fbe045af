#include "own_port.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>

namespace dtrain::external {

OwnPort::OwnPort(const std::string& address)
    : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  socklen_t size = sizeof place;
  if (!listener_ || ::inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1 ||
      ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&place), &size) != 0) {
    throw Error(fmt::format("{}: cannot listen there for the ranks: {}", address, std::strerror(errno)));
  }
  Pipe pipe = make_pipe();
  ended_ = std::move(pipe.read_end);
  end_ = std::move(pipe.write_end);
  number_ = ntohs(place.sin_port);
}

}  // namespace dtrain::external
