#include <dtrain/cluster/spot.hpp>

#include <algorithm>
#include <chrono>

#include <dtrain/base/clock.hpp>
#include <dtrain/base/stats.hpp>
#include <dtrain/base/text.hpp>

#include "ec2_fields.hpp"

namespace dtrain::cluster {

std::optional<double> SpotPrices::of(const std::string& type, const std::string& zone) const {
  const auto zones = by_type.find(type);
  if (zones == by_type.end() || zones->second.empty()) return std::nullopt;
  if (const auto there = zones->second.find(zone); there != zones->second.end()) return there->second;
  std::vector<double> all;
  for (const auto& [name, dollars] : zones->second) all.push_back(dollars);
  return interpolated_median(std::move(all));
}

SpotPrices spot_prices_in(const std::vector<net::Element>& history) {
  SpotPrices prices;
  std::map<std::pair<std::string, std::string>, std::string> times;
  for (const net::Element& one : history) {
    const std::string &type = one.value("instanceType"), &zone = one.value("availabilityZone");
    const auto dollars = parse_number(one.value("spotPrice"));
    std::string& time = times[{type, zone}];
    if (!dollars || one.value("timestamp") < time) continue;
    time = one.value("timestamp");
    prices.by_type[type][zone] = *dollars;
  }
  if (prices.by_type.empty()) prices.why_not = "EC2 lists no prices";
  return prices;
}

// A history that begins now holds the present price of each type and zone.
SpotPrices read_spot_prices(net::AwsCalls& aws, const std::vector<std::string>& types) {
  Fields fields{{"ProductDescription.1", "Linux/UNIX"}, {"StartTime", utc_text(unix_now())}};
  add_list(fields, "InstanceType", types);
  try {
    return spot_prices_in(aws.query_all(net::kEc2, "DescribeSpotPriceHistory", fields, "spotPriceHistorySet"));
  } catch (const net::AwsError& problem) {
    return {.why_not = problem.what()};
  }
}

std::vector<Machine> machines_of(const Spec& spec) {
  const std::string& workers = spec.instance_types.front();
  std::vector<Machine> all{
      {.type = spec.head_type.empty() ? workers : spec.head_type, .spot = spec.spot == SpotUse::only}};
  const int machines = machines_for(spec.workers, weight_of(spec, workers));
  all.resize(1 + static_cast<std::size_t>(machines), {.type = workers, .spot = spec.spot != SpotUse::off});
  return all;
}

std::vector<Machine> machines_of(const Fleet& fleet) {
  std::vector<Machine> all;
  for (const Node& node : fleet.nodes) {
    if (node.alive()) all.push_back({node.type, node.zone, node.market == Market::spot});
  }
  return all;
}

Cost cost_of(const std::vector<Machine>& machines, const SpotPrices& prices, const PriceList& on_demand) {
  Cost cost;
  for (const Machine& machine : machines) {
    auto price = machine.spot ? prices.of(machine.type, machine.zone) : std::nullopt;
    if (!price) price = on_demand.of(machine.type);
    if (price) {
      cost.hourly += *price;
    } else if (std::ranges::find(cost.unpriced, machine.type) == cost.unpriced.end()) {
      cost.unpriced.push_back(machine.type);
    }
  }
  return cost;
}

}  // namespace dtrain::cluster
