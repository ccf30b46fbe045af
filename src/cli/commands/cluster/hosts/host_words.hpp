// What a user says about the hosts of a registered cluster: a host file or words, and prices.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/registered.hpp>
#include <dtrain/elastic/host_file.hpp>

#include "config/option_set.hpp"

namespace dtrain::cli {

// --price USD, for all hosts, or HOST=USD, for one; several of them. Throws UsageError for a text that is no price.
struct HostPrices {
  std::optional<double> of_all{};
  std::map<std::string, double> of_one{};
};
HostPrices prices_from(const std::string& text);
void bind_prices(config::OptionSet& set, HostPrices& prices, const std::string& help);

std::vector<cluster::RegisteredHost> hosts_of(const elastic::HostList& list);
// "h4 slots=2 h5" as lines of a host file. Throws UsageError for words that are no hosts.
std::vector<cluster::RegisteredHost> hosts_in_words(const std::string& words);
// Throws UsageError for a price of a host that is not among them.
void give_prices(const HostPrices& prices, std::vector<cluster::RegisteredHost>& hosts);

// Throws UsageError for a host that another cluster of this user has.
void refuse_hosts_of_others(const std::string& cluster, const std::vector<cluster::RegisteredHost>& hosts);

}  // namespace dtrain::cli
