#include <dtrain/net/addresses.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>

#include <dtrain/base/releaser.hpp>
#include <dtrain/net/socket_address.hpp>

namespace dtrain::net {
namespace {

struct Card {
  std::string name;
  SocketAddress address;
  bool loopback = false;
};

// Those that are up, once for each address that other machines can use: an IPv4 one, or one of IPv6 that leads further
// than its link. IPv4 first: some programs that `dtrain launch` runs know nothing else.
std::vector<Card> cards() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return {{"lo", SocketAddress("127.0.0.1", 0), true}};
  const std::unique_ptr<ifaddrs, Releaser<::freeifaddrs>> list(found);
  std::vector<Card> cards;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP)) continue;
    const SocketAddress address(*entry->ifa_addr);
    if (address.size() == 0 || is_link_local(address.address())) continue;
    cards.push_back({entry->ifa_name, address, (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  std::ranges::stable_partition(cards, [](const Card& card) { return card.address.family() == AF_INET; });
  return cards;
}

// As IPv6 has it, an IPv4 address as ::ffff:a.b.c.d. nullopt: no numeric address.
std::optional<in6_addr> parse_numeric(const std::string& address) {
  in6_addr parsed{};
  for (const std::string& text : {address, "::ffff:" + address}) {
    if (::inet_pton(AF_INET6, text.c_str(), &parsed) == 1) return parsed;
  }
  return std::nullopt;
}

}  // namespace

bool is_loopback(const std::string& address) {
  constexpr unsigned char kLoopbackNet = 127;
  const std::optional<in6_addr> parsed = parse_numeric(address);
  if (!parsed) return false;
  return IN6_IS_ADDR_LOOPBACK(&*parsed) ||
         (IN6_IS_ADDR_V4MAPPED(&*parsed) && parsed->s6_addr[sizeof parsed->s6_addr - 4] == kLoopbackNet);
}

bool is_any_address(const std::string& address) {
  const std::optional<in6_addr> parsed = parse_numeric(address);
  if (!parsed) return false;
  const unsigned char* const v4 = parsed->s6_addr + sizeof parsed->s6_addr - 4;
  return IN6_IS_ADDR_UNSPECIFIED(&*parsed) ||
         (IN6_IS_ADDR_V4MAPPED(&*parsed) && std::all_of(v4, v4 + 4, [](unsigned char byte) { return byte == 0; }));
}

bool is_link_local(const std::string& address) {
  const std::optional<in6_addr> parsed = parse_numeric(address.substr(0, address.find('%')));  // without its card
  return parsed && IN6_IS_ADDR_LINKLOCAL(&*parsed);
}

bool is_numeric(const std::string& address) { return parse_numeric(address).has_value(); }

bool is_ipv4(const std::string& address) {
  in_addr parsed{};
  return ::inet_pton(AF_INET, address.c_str(), &parsed) == 1;
}

std::string in_brackets(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses, loopback;
  for (const Card& card : cards()) (card.loopback ? loopback : addresses).push_back(card.address.address());
  return addresses.empty() ? loopback : addresses;
}

std::string peer_address(int socket) { return SocketAddress::peer_of(socket).address(); }

std::string card_of(const std::string& address) {
  for (const Card& card : cards()) {
    if (card.address.address() == address) return card.name;
  }
  return {};
}

}  // namespace dtrain::net
