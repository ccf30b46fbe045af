#include <dtrain/cluster/types.hpp>

#include <algorithm>
#include <future>
#include <set>

#include <dtrain/base/gpu_models.hpp>
#include <dtrain/base/text.hpp>

#include "ec2_fields.hpp"

namespace dtrain::cluster {
namespace {

// All types of the region's machines, with their zones.
std::map<std::string, MachineType> read_all_types(net::AwsCalls& aws) {
  std::map<std::string, MachineType> types;
  for (const net::Element& one :
       aws.query_all(net::kEc2, "DescribeInstanceTypes", {{"MaxResults", "100"}}, "instanceTypeSet")) {
    MachineType type = type_of(one);
    types[type.name] = std::move(type);
  }
  return types;
}

// vCPUs of running on-demand machines of the whole account, by quota.
std::map<std::string, int> read_vcpus_in_use(net::AwsCalls& aws, const std::map<std::string, MachineType>& types) {
  Fields fields = filtered({{"instance-state-name", "running"}});
  fields.insert(fields.end(), {{"Filter.1.Value.2", "pending"}, {"MaxResults", "1000"}});
  std::map<std::string, int> used;
  for (const net::Element& reservation : aws.query_all(net::kEc2, "DescribeInstances", fields, "reservationSet")) {
    for (const net::Element& instance : reservation.list("instancesSet")) {
      const Node node = node_of(instance);
      const auto type = types.find(node.type);
      if (node.market == Market::on_demand && type != types.end())
        used[quota_of(node.type, node.market)] += type->second.vcpus;
    }
  }
  return used;
}

std::vector<std::string> names_of(const std::vector<TypeOffer>& offers) {
  std::vector<std::string> names;
  for (const TypeOffer& one : offers) names.push_back(one.type.name);
  return names;
}

TypeOffer offer_of(MachineType type, const PriceList& prices) {
  TypeOffer offer{.why_not = why_not_trained_on(type),
                  .quota = quota_of(type.name, Market::on_demand),
                  .on_demand = prices.of(type.name)};
  if (const GpuModel* const gpu = gpu_model(type.gpu_name); gpu && gpu->capability != Capability{}) {
    offer.capability = text_of(gpu->capability);
  }
  offer.type = std::move(type);
  return offer;
}

}  // namespace

TypeOffers read_type_offers(net::AwsCalls& aws, const TypeWish& wish, const PriceList& prices) {
  auto offered = std::async(std::launch::async, [&] { return read_offers(aws, {}); });
  std::map<std::string, MachineType> types = read_all_types(aws);
  for (const auto& [type, zone] : offered.get()) {
    if (const auto known = types.find(type); known != types.end()) known->second.zones.insert(zone);
  }
  TypeOffers found;
  for (const auto& [name, type] : types) {
    if (!type.zones.empty()) found.offers.push_back(offer_of(type, prices));
  }
  TypeWish any_price = wish;
  any_price.max_price.reset();
  found.offers = fitting_offers(std::move(found.offers), any_price);
  if (found.offers.empty()) return found;
  const std::vector<std::string> names = names_of(found.offers);
  auto spot = std::async(std::launch::async, [&] { return read_spot_prices(aws, names); });
  auto used = std::async(std::launch::async, [&] { return read_vcpus_in_use(aws, types); });
  const std::map<std::string, double> quotas = read_quotas(aws, names, {Market::on_demand});
  const SpotPrices spot_prices = spot.get();
  const std::map<std::string, int> in_use = used.get();
  found.spot_why_not = spot_prices.why_not;
  for (TypeOffer& one : found.offers) {
    one.spot = spot_prices.of(one.type.name, "");
    const auto limit = quotas.find(one.quota);
    const auto taken = in_use.find(one.quota);
    if (limit != quotas.end()) one.vcpus_left = limit->second - (taken == in_use.end() ? 0 : taken->second);
  }
  found.offers = fitting_offers(std::move(found.offers), wish);
  return found;
}

}  // namespace dtrain::cluster
