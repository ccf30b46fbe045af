#include <dtrain/net/addresses.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

#include <dtrain/base/releaser.hpp>

#include "server/sockets.hpp"

namespace dtrain::net {
namespace {

struct Card {
  std::string name, address;
  bool loopback = false;
};

// Those that are up, once for each IPv4 address.
std::vector<Card> cards() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return {{"lo", "127.0.0.1", true}};
  const std::unique_ptr<ifaddrs, Releaser<::freeifaddrs>> list(found);
  std::vector<Card> cards;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET || !(entry->ifa_flags & IFF_UP)) continue;
    char text[INET_ADDRSTRLEN] = "";
    const auto& address = reinterpret_cast<const sockaddr_in&>(*entry->ifa_addr);
    ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    cards.push_back({entry->ifa_name, text, (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return cards;
}

}  // namespace

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses, loopback;
  for (const Card& card : cards()) (card.loopback ? loopback : addresses).push_back(card.address);
  return addresses.empty() ? loopback : addresses;
}

std::string peer_address(int socket) { return peer_name(socket).address; }

std::string card_of(const std::string& address) {
  for (const Card& card : cards()) {
    if (card.address == address) return card.name;
  }
  return {};
}

}  // namespace dtrain::net
