#include "leased_ports.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::foreign {
namespace {

std::pair<FileDescriptor, std::uint16_t> lease(const std::string& address) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  if (::inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1) {
    throw Error(fmt::format("{}: no IPv4 address to lease ports of", address));
  }
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t size = sizeof place;
  if (made < 0) throw Error(fmt::format("cannot lease a port of {}: {}", address, std::strerror(errno)));
  FileDescriptor socket(made);
  // Bound, but not listening: whoever connects is refused as if nobody were there.
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&place), &size) != 0) {
    throw Error(fmt::format("cannot lease a port of {}: {}", address, std::strerror(errno)));
  }
  return {std::move(socket), ntohs(place.sin_port)};
}

}  // namespace

LeasedPorts::LeasedPorts(const std::string& address, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    auto [socket, number] = lease(address);
    sockets_.push_back(std::move(socket));
    numbers_.push_back(number);
  }
}

}  // namespace dtrain::foreign
