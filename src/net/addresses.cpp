#include <dtrain/net/addresses.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

namespace dtrain::net {

std::vector<std::string> own_addresses() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return {"127.0.0.1"};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(found, &::freeifaddrs);
  std::vector<std::string> addresses, loopback;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET || !(entry->ifa_flags & IFF_UP)) continue;
    char text[INET_ADDRSTRLEN] = "";
    const auto& address = reinterpret_cast<const sockaddr_in&>(*entry->ifa_addr);
    ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    ((entry->ifa_flags & IFF_LOOPBACK) ? loopback : addresses).emplace_back(text);
  }
  return addresses.empty() ? loopback : addresses;
}

}  // namespace dtrain::net
