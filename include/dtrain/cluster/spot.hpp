// The present prices of spot instances, as EC2 reports them: an estimate, as prices change and capacity may be missing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/cost.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/spec.hpp>

namespace dtrain::cluster {

struct SpotPrices {
  std::map<std::string, std::map<std::string, double>> by_type{};  // {type: {zone: US dollars an hour}}
  std::string why_not{};                                           // why there are no prices; empty: there are

  // The price in that zone; if the zone is empty or unknown, the median over the zones. nullopt: nothing is known of
  // the type.
  std::optional<double> of(const std::string& type, const std::string& zone) const;
};

// The latest prices of each type and zone. An error of EC2 becomes why_not, which the caller must look at: without it,
// spot machines would count at the price on demand. Other errors of AwsCalls are thrown.
SpotPrices read_spot_prices(net::AwsCalls& aws, const std::vector<std::string>& types);
// Pure: the latest price of each type and zone among the entries of DescribeSpotPriceHistory.
SpotPrices spot_prices_in(const std::vector<net::Element>& history);

struct Machine {
  std::string type{}, zone{};
  bool spot = false;
};
// All machines that the specification asks for.
std::vector<Machine> machines_of(const Spec& spec);
std::vector<Machine> machines_of(const Fleet& fleet);  // those that run
// Spot machines at the spot price; other machines, and those without a spot price, at the price on demand.
Cost cost_of(const std::vector<Machine>& machines, const SpotPrices& prices, const PriceList& on_demand);

}  // namespace dtrain::cluster
