// A numeric IPv4 or IPv6 address with a port, as the calls of sockets take and return it.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace dtrain::net {

class SocketAddress {
 public:
  SocketAddress() = default;  // no address: that of a socket of another family
  // Numeric, for names are not looked up; a link-local address names its card: fe80::1%eth0. Throws UsageError.
  SocketAddress(const std::string& address, std::uint16_t port);
  explicit SocketAddress(const sockaddr& address);  // no address if its family is neither IPv4 nor IPv6
  static SocketAddress own_of(int socket);
  static SocketAddress peer_of(int socket);

  // For bind(2) and connect(2).
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }

  // Without port and brackets; IPv4 in IPv6 as IPv4; a link-local one with its card. Empty for other families.
  std::string address() const;
  std::uint16_t port() const;  // 0 for other families

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

}  // namespace dtrain::net
