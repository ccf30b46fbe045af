// What spot machines cost now, as EC2 tells it: an estimate, as these prices change and the machines may not be there.
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
  std::string why_not{};                                           // there are none; empty: there are

  // In that zone; where it is empty, or not known, the median of the zones. nullopt: nothing is known of the type.
  std::optional<double> of(const std::string& type, const std::string& zone) const;
};

// The latest of each type and zone. What EC2 refuses is why_not; throws what AwsCalls does besides AwsError.
SpotPrices read_spot_prices(net::AwsCalls& aws, const std::vector<std::string>& types);
// Pure: the latest of each, of the entries of DescribeSpotPriceHistory.
SpotPrices spot_prices_in(const std::vector<net::Element>& history);

struct Machine {
  std::string type{}, zone{};
  bool spot = false;
};
// Of what the specification asks for, all of them.
std::vector<Machine> machines_of(const Spec& spec);
std::vector<Machine> machines_of(const Fleet& fleet);
// Those that are spot at the spot price, the others, and those without one, at the price on demand.
Cost cost_of(const std::vector<Machine>& machines, const SpotPrices& prices);

}  // namespace dtrain::cluster
