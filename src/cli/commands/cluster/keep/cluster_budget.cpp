#include "cluster_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/tagged_prices.hpp>

namespace dtrain::cli {
namespace {

cluster::SpotPrices spot_prices_for(ClusterCloud& cloud, const cluster::Fleet& fleet) {
  std::set<std::string> types;
  for (const std::vector<cluster::Node>* nodes : {&fleet.nodes, &fleet.ending}) {
    for (const cluster::Node& node : *nodes) {
      if (node.market == cluster::Market::spot) types.insert(node.type);
    }
  }
  if (types.empty()) return {};
  return cluster::read_spot_prices(cloud.aws(), {types.begin(), types.end()});
}

double left_of(const BudgetView& view) { return std::max(*view.budget - view.spending.dollars, 0.0); }

std::optional<double> hours_left(const BudgetView& view) {
  if (!view.is_known() || view.hourly.hourly <= 0) return std::nullopt;
  return left_of(view) / view.hourly.hourly;
}

}  // namespace

void bind_budget(config::OptionSet& set, double& dollars, const std::string& help) {
  config::Option& option = set.add(fmt::format("--{}", kBudget), dollars, "USD", help, config::at_least(0));
  option.flag_only = true;
  option.show = [] { return std::string(); };  // without the option a cluster keeps its budget
}

BudgetView read_budget(ClusterCloud& cloud, const cluster::Fleet& fleet) {
  BudgetView view;
  if (const auto wish = cluster::tagged_wish(fleet)) view.budget = wish->budget;
  view.spot = spot_prices_for(cloud, fleet);
  const cluster::PriceList prices = cluster::with_tagged_prices(fleet, cloud.prices());
  view.spending = cluster::spending_until(fleet, cluster::tagged_spending(fleet),
                                          cluster::node_price(prices, view.spot), cluster::aws_time(cloud.aws()));
  view.hourly = cluster::cost_of(cluster::machines_of(fleet), view.spot, prices);
  return view;
}

void refuse_budget_on_emr() {
  throw UsageError("a budget is not for EMR, whose fee for each instance dtrain does not know",
                   "leave --budget out; AWS Budgets in the console covers EMR");
}

void require_budget(const BudgetView& view, const std::vector<std::string>& types, ClusterCloud& cloud,
                    const cluster::Fleet& fleet) {
  if (!view.budget) return;
  if (fleet.on_emr()) refuse_budget_on_emr();
  cloud.warn_of_prices();
  if (cluster::budget_state(*view.budget, view.spending.dollars) == cluster::BudgetState::spent) {
    throw UsageError(
        fmt::format("cluster {}: {} are spent", fleet.name, cluster::budget_text(*view.budget, view.spending)),
        fmt::format("dtrain cluster watch {0} --heal --budget USD with more than that raises it and starts the workers "
                    "again; dtrain cluster down {0} ends the cluster",
                    fleet.name));
  }
  std::vector<std::string> unknown =
      cluster::cost_of(types, cluster::with_tagged_prices(fleet, cloud.prices())).unpriced;
  unknown.insert(unknown.end(), view.spending.unpriced.begin(), view.spending.unpriced.end());
  if (unknown.empty()) return;
  throw UsageError(
      fmt::format("the price of {} is unknown, so a budget cannot be kept", join(unknown, ", ")),
      fmt::format("dtrain cluster types --region {} --update-prices fetches AWS's prices; else choose another type, or "
                  "leave --budget out",
                  cloud.aws().region()));
}

Json budget_json(const BudgetView& view) {
  if (!view.budget) return {};
  const auto hours = hours_left(view);
  return Json::object({{"dollars", *view.budget},
                       {"spent", view.spending.dollars},
                       {"unpriced", json_texts(view.spending.unpriced)},
                       {"left", view.spending.unpriced.empty() ? Json(left_of(view)) : Json()},
                       {"hours_left", hours ? Json(*hours) : Json()}});
}

std::string budget_line(const BudgetView& view) {
  const std::string spent = cluster::budget_text(*view.budget, view.spending) + " are spent";
  if (!view.spending.unpriced.empty()) return spent + "; what is left is unknown";
  const auto hours = hours_left(view);
  return fmt::format("{}; ${:.2f} are left{}", spent, left_of(view),
                     hours ? fmt::format(", for about {:.1f} h of these machines", *hours) : "");
}

}  // namespace dtrain::cli
