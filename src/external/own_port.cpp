#include "own_port.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>

namespace dtrain::external {

OwnPort::OwnPort(const std::string& address)
    : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  socklen_t size = sizeof place;
  int pipe[2];
  if (!listener_ || ::inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1 ||
      ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&place), &size) != 0 ||
      ::pipe2(pipe, O_CLOEXEC) != 0) {
    throw Error(fmt::format("{}: cannot listen there for the ranks: {}", address, std::strerror(errno)));
  }
  ended_ = FileDescriptor(pipe[0]);
  end_ = FileDescriptor(pipe[1]);
  number_ = ntohs(place.sin_port);
}

}  // namespace dtrain::external
