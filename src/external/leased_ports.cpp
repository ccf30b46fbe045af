#include "leased_ports.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/net/socket_address.hpp>

namespace dtrain::external {
namespace {

constexpr int kLowest = 10'000, kHighest = 65'535;
constexpr int kFewest = 1'000;  // with fewer free ports, those of the kernel's range are used too
constexpr int kTries = 10'000;

struct Range {
  int first = kLowest, last = kHighest;
};

// Ports below the range from which the kernel chooses.
Range choose_range() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  int low = 0;
  if (file >> low && low - kLowest >= kFewest) return {kLowest, low - 1};
  return {};
}

// False when the port is in use.
bool is_free(const std::string& address, int port) {
  const net::SocketAddress place(address, static_cast<std::uint16_t>(port));
  const FileDescriptor socket(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(socket.get(), place.get(), place.size()) == 0) return true;
  if (errno == EADDRINUSE || errno == EACCES) return false;
  throw Error(fmt::format("cannot lease a port of {}: {}", address, std::strerror(errno)));
}

// A name that only one process of this network namespace can hold, and that is free again when the process ends. Empty:
// another process holds it.
FileDescriptor lock_of(int port) {
  const std::string name = fmt::format("dtrain-port-{}", port);
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  name.copy(place.sun_path + 1, sizeof place.sun_path - 1);  // the first byte is 0: no file
  FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), size) != 0) return {};
  return socket;
}

int random_port(const Range& range) {
  const std::string bytes = unpredictable_bytes(4);
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return range.first + static_cast<int>(number % static_cast<std::uint32_t>(range.last - range.first + 1));
}

}  // namespace

LeasedPorts::LeasedPorts(const std::string& address, std::size_t count) {
  const Range range = choose_range();
  for (int i = 0; i < kTries && numbers_.size() < count; ++i) {
    const int port = random_port(range);
    FileDescriptor lock = lock_of(port);
    if (!lock || !is_free(address, port)) continue;
    locks_.push_back(std::move(lock));
    numbers_.push_back(static_cast<std::uint16_t>(port));
  }
  if (numbers_.size() < count)
    throw Error(fmt::format("{}: no port from {} to {} is free", address, range.first, range.last));
}

}  // namespace dtrain::external
