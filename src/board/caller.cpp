#include "caller.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

#include <dtrain/base/text.hpp>

namespace dtrain::board {
namespace {

constexpr std::size_t kMostRemembered = 1024;

// The address as the kernel's tables have it: words of four bytes, each with its last byte first. An IPv4 address is
// the end of its form in IPv6. Empty: no address.
std::string table_address(const std::string& address) {
  std::array<unsigned char, 16> bytes{};
  std::size_t first = 0, end = 4;
  if (::inet_pton(AF_INET, address.c_str(), bytes.data()) != 1) {
    if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return {};
    end = 16;
    // What a port of both kinds says of a caller by IPv4, whose own socket may be of either kind.
    if (address.starts_with("::ffff:") && address.find('.') != address.npos) first = 12;
  }
  std::string text;
  for (std::size_t word = first; word < end; word += 4) {
    for (std::size_t byte = 4; byte-- > 0;) text += fmt::format("{:02X}", bytes[word + byte]);
  }
  return text;
}

}  // namespace

bool is_of_user(std::string_view table, const CallerPlace& place, unsigned user) {
  const std::string address = table_address(place.address);
  if (address.empty()) return false;
  const std::string own = fmt::format("{}:{:04X}", address, place.port),
                    called = fmt::format(":{:04X}", place.called_port);
  bool found = false;
  for (const std::string& line : split(table, '\n')) {
    std::istringstream words(line);  // "0: 0100007F:D431 0100007F:1777 01 0:0 0:0 0 1000 0 12345"
    std::string number, local, remote, state, queue, timer, retries, timeout;
    unsigned owner = 0;
    std::uint64_t inode = 0;
    if (!(words >> number >> local >> remote >> state >> queue >> timer >> retries >> owner >> timeout >> inode))
      continue;
    if (!local.ends_with(own) || !remote.ends_with(called)) continue;
    // A socket that its process has closed has no inode, and the kernel may say that it is root's.
    if (inode == 0 || (owner != user && owner != 0)) return false;
    found = true;
  }
  return found;
}

bool is_own_caller(const CallerPlace& place) {
  std::string table;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(path);
    table.append(std::istreambuf_iterator<char>(file), {});
  }
  return is_of_user(table, place, ::getuid());
}

bool OwnCallers::has(std::uint64_t connection, const CallerPlace& place) {
  if (own_.contains(connection)) return true;
  if (!is_own_caller(place)) return false;
  own_.insert(connection);
  if (own_.size() > kMostRemembered) own_.erase(own_.begin());
  return true;
}

}  // namespace dtrain::board
