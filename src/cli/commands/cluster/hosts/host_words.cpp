#include "host_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::cli {
namespace {

double dollars_in(const std::string& text) {
  const auto dollars = parse_number(text);
  if (dollars && std::isfinite(*dollars) && *dollars >= 0) return *dollars;
  throw UsageError(fmt::format("'{}' is no price", text), "write US dollars an hour, as in 0.35 or h1=0.35");
}

std::string prices_text(const HostPrices& prices) {
  std::vector<std::string> parts;
  if (prices.of_all) parts.push_back(fmt::format("{}", *prices.of_all));
  for (const auto& [host, dollars] : prices.of_one) parts.push_back(fmt::format("{}={}", host, dollars));
  return join(parts, ",");
}

}  // namespace

HostPrices prices_from(const std::string& text) {
  HostPrices prices;
  for (const std::string& repeated : split(text, config::kBetweenRepeated)) {
    for (const std::string& one : split(repeated, ',')) {
      const auto equals = one.rfind('=');
      if (equals == one.npos) {
        prices.of_all = dollars_in(std::string(trim(one)));
      } else {
        prices.of_one[std::string(trim(one.substr(0, equals)))] = dollars_in(std::string(trim(one.substr(equals + 1))));
      }
    }
  }
  return prices;
}

void bind_prices(config::OptionSet& set, HostPrices& prices, const std::string& help) {
  config::Option& option = set.add_custom(
      "--price", "[HOST=]USD[,...]", help, [&prices](const std::string& text) { prices = prices_from(text); },
      [&prices] { return prices_text(prices); });
  option.repeats = option.comma_list = option.flag_only = true;
}

std::vector<cluster::RegisteredHost> hosts_of(const elastic::HostList& list) {
  std::vector<cluster::RegisteredHost> hosts;
  for (const elastic::HostLine& line : list.hosts) {
    hosts.push_back({.name = line.name, .user = line.user, .host = line.host, .port = line.port, .slots = line.slots});
  }
  return hosts;
}

std::vector<cluster::RegisteredHost> hosts_in_words(const std::string& words) {
  std::string lines;
  for (const std::string& word : split(words, ' ')) {
    if (!word.empty()) lines += (word.starts_with("slots=") ? " " : "\n") + word;
  }
  const elastic::HostList list = elastic::parse_host_file(lines + "\n");
  if (list.problems.empty() && !list.hosts.empty()) return hosts_of(list);
  throw UsageError(
      fmt::format("'{}' names no host: {}", words, list.problems.empty() ? "there is no word" : list.problems.front()),
      "write hosts as in a host file: name, or user@host:port, each optionally with slots=n");
}

void give_prices(const HostPrices& prices, std::vector<cluster::RegisteredHost>& hosts) {
  for (cluster::RegisteredHost& host : hosts) host.hourly = prices.of_all;
  for (const auto& [name, dollars] : prices.of_one) {
    const auto found = std::ranges::find(hosts, name, &cluster::RegisteredHost::name);
    if (found == hosts.end()) {
      throw UsageError(fmt::format("--price {}={}: there is no host {}", name, dollars, name),
                       "name the host as its host file does");
    }
    found->hourly = dollars;
  }
}

void refuse_hosts_of_others(const std::string& cluster, const std::vector<cluster::RegisteredHost>& hosts) {
  for (const cluster::RegisteredCluster& other : cluster::all_registered()) {
    if (other.name == cluster) continue;
    for (const cluster::RegisteredHost& host : hosts) {
      const bool is_there = std::ranges::any_of(
          other.hosts, [&](const auto& one) { return one.host == host.host && one.port == host.port; });
      if (!is_there) continue;
      throw UsageError(fmt::format("{} belongs to cluster {}", host.name, other.name),
                       fmt::format("dtrain cluster remove {0} {1} takes it out of that one; dtrain cluster down {0} "
                                   "forgets that cluster",
                                   other.name, host.name));
    }
  }
}

}  // namespace dtrain::cli
