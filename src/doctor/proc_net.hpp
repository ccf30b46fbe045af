// Sockets of the tables in /proc/net, see proc(5).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::doctor {

struct TcpSocket {
  std::string address, peer;  // numeric; IPv4 also where the socket is one for IPv6
  std::uint16_t port = 0, peer_port = 0;
  bool listens = false;
  std::uint64_t inode = 0;
};
// The content of /proc/net/tcp or tcp6. Lines that are damaged are passed over.
std::vector<TcpSocket> parse_tcp_table(std::string_view text);

struct UnixListener {
  std::string name;  // a path, or "@..." in the abstract space
  std::uint64_t inode = 0;
};
// The sockets in the content of /proc/net/unix that listen and have a name.
std::vector<UnixListener> parse_unix_table(std::string_view text);

}  // namespace dtrain::doctor
