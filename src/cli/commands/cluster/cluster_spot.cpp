#include "cluster_spot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <dtrain/base/text.hpp>

#include "forecast_view.hpp"

namespace dtrain::cli {
namespace {

std::vector<std::string> spot_types(const std::vector<cluster::Machine>& machines) {
  std::set<std::string> types;
  for (const cluster::Machine& machine : machines) {
    if (machine.spot) types.insert(machine.type);
  }
  return {types.begin(), types.end()};
}

std::string on_demand_text(const std::string& type, const SpotCost& spot) {
  const auto dollars = spot.on_demand.of(type);
  return dollars ? fmt::format("${:.4f} on demand", *dollars) : "unknown on demand";
}

std::string type_text(const std::string& type, const SpotCost& spot) {
  const auto zones = spot.prices.by_type.find(type);
  if (zones == spot.prices.by_type.end()) return fmt::format("no spot price, {}", on_demand_text(type, spot));
  std::vector<std::string> words;
  for (const auto& [zone, dollars] : zones->second) words.push_back(fmt::format("${:.4f} in {}", dollars, zone));
  return fmt::format("{} on spot; {}", join(words, ", "), on_demand_text(type, spot));
}

}  // namespace

bool SpotCost::any() const { return std::ranges::any_of(machines, &cluster::Machine::spot); }

SpotCost read_spot_cost(net::AwsCalls& aws, std::vector<cluster::Machine> machines,
                        const cluster::PriceList& on_demand) {
  SpotCost spot{.machines = std::move(machines), .on_demand = on_demand};
  if (spot.any()) spot.prices = cluster::read_spot_prices(aws, spot_types(spot.machines));
  return spot;
}

Json spot_json(const SpotCost& spot) {
  if (!spot.any()) return {};
  Json prices = Json::array();
  for (const auto& [type, zones] : spot.prices.by_type) {
    const auto on_demand = spot.on_demand.of(type);
    for (const auto& [zone, dollars] : zones) {
      prices.push_back(Json::object({{"type", type},
                                     {"zone", zone},
                                     {"dollars_per_hour", dollars},
                                     {"dollars_per_hour_on_demand", on_demand ? Json(*on_demand) : Json()}}));
    }
  }
  const bool known = spot.prices.why_not.empty();
  return Json::object({{"estimate", true},
                       {"why_not", spot.prices.why_not},
                       {"dollars_per_hour", known ? Json(spot.cost().hourly) : Json()},
                       {"prices", prices}});
}

void answer_spot(const SpotCost& spot, Reporter& reporter) {
  if (!spot.any()) return;
  if (!spot.prices.why_not.empty()) {
    reporter.answer(fmt::format("spot prices are unknown, so on-demand prices are shown: {}", spot.prices.why_not));
    return;
  }
  reporter.answer(fmt::format("{} an hour on spot, estimated from current prices", cost_text(spot.cost())));
  for (const std::string& type : spot_types(spot.machines)) {
    reporter.answer(fmt::format("  {}: {}", type, type_text(type, spot)));
  }
}

void answer_plan_with_spot(const RegionOrder& order, const std::optional<board::Forecast>& forecast,
                           Reporter& reporter) {
  const auto& [cloud, fleet, left, request, account, plan] = order.tried.front();
  const SpotCost spot = read_spot_cost(cloud->aws(), cluster::machines_of(request.spec), account.prices);
  if (reporter.json()) {
    Json document = plan_json(request, account, plan, fleet);
    document["spot"] = spot_json(spot);
    document["regions"] = regions_json(order);
    if (forecast) document["forecast"] = forecast_json(*forecast, spot.cost(), true);
    return reporter.answer_json(document);
  }
  answer_plan(request, account, plan, reporter);
  answer_spot(spot, reporter);
  answer_regions(order, reporter);
  if (forecast) reporter.answer(forecast_line(*forecast, spot.cost(), true));
  warn_of_other_region(account.prices, cloud->aws(), reporter);
}

}  // namespace dtrain::cli
