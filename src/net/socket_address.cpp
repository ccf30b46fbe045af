#include <dtrain/net/socket_address.hpp>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <memory>

#include <dtrain/base/error.hpp>
#include <dtrain/base/releaser.hpp>

namespace dtrain::net {
namespace {

const sockaddr_in& as_v4(const sockaddr_storage& storage) { return reinterpret_cast<const sockaddr_in&>(storage); }
const sockaddr_in6& as_v6(const sockaddr_storage& storage) { return reinterpret_cast<const sockaddr_in6&>(storage); }

std::string text_of(int family, const void* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, bytes, text.data(), text.size()) != nullptr ? text.data() : "";
}

// "%eth0" for its number; empty where there is no such card.
std::string card_suffix(std::uint32_t number) {
  std::array<char, IF_NAMESIZE> name{};
  return ::if_indextoname(number, name.data()) != nullptr ? fmt::format("%{}", name.data()) : "";
}

using AddressCall = int(int, sockaddr*, socklen_t*);
SocketAddress address_from(AddressCall& call, int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  return call(socket, address, &size) == 0 ? SocketAddress(*address) : SocketAddress();
}

}  // namespace

SocketAddress::SocketAddress(const std::string& address, std::uint16_t port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) {
    throw UsageError(fmt::format("'{}' is no numeric IPv4 or IPv6 address", address));
  }
  const std::unique_ptr<addrinfo, Releaser<::freeaddrinfo>> list(found);
  *this = SocketAddress(*list->ai_addr);
}

SocketAddress::SocketAddress(const sockaddr& address) {
  const socklen_t size = address.sa_family == AF_INET    ? sizeof(sockaddr_in)
                         : address.sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                         : 0;
  std::memcpy(&storage_, &address, size);
  size_ = size;
}

SocketAddress SocketAddress::own_of(int socket) { return address_from(::getsockname, socket); }
SocketAddress SocketAddress::peer_of(int socket) { return address_from(::getpeername, socket); }

std::string SocketAddress::address() const {
  if (family() == AF_INET) return text_of(AF_INET, &as_v4(storage_).sin_addr);
  if (family() != AF_INET6) return {};
  const in6_addr& six = as_v6(storage_).sin6_addr;
  constexpr std::size_t kV4 = 12;  // where the IPv4 address begins
  if (IN6_IS_ADDR_V4MAPPED(&six)) return text_of(AF_INET, six.s6_addr + kV4);
  return text_of(AF_INET6, &six) + (IN6_IS_ADDR_LINKLOCAL(&six) ? card_suffix(as_v6(storage_).sin6_scope_id) : "");
}

std::uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(as_v4(storage_).sin_port);
  return family() == AF_INET6 ? ntohs(as_v6(storage_).sin6_port) : std::uint16_t{0};
}

}  // namespace dtrain::net
