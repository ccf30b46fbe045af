#include <fmt/format.h>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "cluster_spot.hpp"
#include "keep/cluster_budget.hpp"

namespace dtrain::cli {
namespace {

struct CostCommand {
  config::ClusterPlace place;
};

void bind(config::OptionSet& set, CostCommand& options) { config::bind_cluster(set, options.place); }

Json document(const cluster::Fleet& fleet, const std::vector<cluster::Kept>& storage, const SpotCost& spot,
              const BudgetView& budget) {
  const cluster::Cost cost = cluster::cost_of(fleet, spot.on_demand);
  Json nodes = Json::array(), systems = Json::array();
  for (const cluster::Node& node : fleet.nodes) {
    const auto price = spot.on_demand.of(node.type);
    const auto now = node.market == cluster::Market::spot ? spot.prices.of(node.type, node.zone) : std::nullopt;
    nodes.push_back(Json::object({{"name", node.name},
                                  {"type", node.type},
                                  {"market", enum_name(cluster::kMarketNames, node.market)},
                                  {"hours", cluster::hours_of(node)},
                                  {"dollars_per_hour", price ? Json(*price) : Json()},
                                  {"spot_dollars_per_hour", now ? Json(*now) : Json()}}));
  }
  for (const cluster::Kept& one : storage) {
    systems.push_back(Json::object({{"file_system", one.file_system}, {"dollars_per_month", one.monthly}}));
  }
  return Json::object({{"schema", "dtrain.cluster-cost/1"},
                       {"cluster", fleet.name},
                       {"dollars_per_hour", hourly_json(cost)},
                       {"dollars_per_day", hourly_json({cost.hourly * cluster::kHoursOfADay, cost.unpriced})},
                       {"dollars_so_far", so_far_json(fleet, spot.on_demand)},
                       {"budget", budget_json(budget)},
                       {"prices_of", spot.on_demand.region},
                       {"prices_published", spot.on_demand.published},
                       {"spot", spot_json(spot)},
                       {"emr", fleet.emr ? fleet.emr->id : ""},
                       {"without_price_of_emr", fleet.on_emr()},
                       {"unpriced", unpriced_json(cost)},
                       {"nodes", nodes},
                       {"storage", systems}});
}

void answer_table(const cluster::Fleet& fleet, const std::vector<cluster::Kept>& storage, const SpotCost& spot,
                  Reporter& reporter) {
  if (fleet.on_emr()) {
    reporter.answer(fmt::format("{}: these are the prices of its instances; EMR charges an extra fee for each instance",
                                fleet.emr ? fmt::format("EMR cluster {} ({})", fleet.emr->id, fleet.emr->state)
                                          : "an EMR cluster, which has ended"));
  }
  for (const cluster::Node& node : fleet.nodes) {
    const auto price = spot.on_demand.of(node.type);
    reporter.answer(fmt::format("{:<21}{:<16}{:<11}{:>8.1f} h  {}", node.name, node.type,
                                enum_name(cluster::kMarketNames, node.market), cluster::hours_of(node),
                                price ? fmt::format("${:.3f} an hour", *price) : "price unknown"));
  }
  for (const cluster::Kept& one : storage) {
    reporter.answer(fmt::format("{:<21}{:<37}   ${:.2f} a month", one.file_system, "shared files", one.monthly));
  }
  const cluster::Cost cost = cluster::cost_of(fleet, spot.on_demand);
  reporter.answer(fmt::format("{} an hour", cost_text(cost)));
  if (cost.hourly > 0) {
    reporter.answer(fmt::format("${:.2f} a day, ${:.2f} so far", cost.hourly * cluster::kHoursOfADay,
                                cluster::cost_so_far(fleet, spot.on_demand)));
  }
  reporter.note(spot.on_demand.text() + "; spot instances cost less, and disks and traffic cost extra");
  answer_spot(spot, reporter);
}

ExitCode act(const CostCommand& options, const config::OptionSet&, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  std::vector<cluster::Kept> storage;
  for (const cluster::FileSystem& system : cluster::own_file_systems(cloud.aws(), options.place.name)) {
    storage.push_back({system.id, cluster::monthly_price(system)});
  }
  if (storage.empty()) require_there(fleet, cloud.aws());
  const SpotCost spot = read_spot_cost(cloud.aws(), cluster::machines_of(fleet), cloud.prices());
  const BudgetView budget = read_budget(cloud, fleet);
  if (reporter.json()) {
    reporter.answer_json(document(fleet, storage, spot, budget));
  } else {
    answer_table(fleet, storage, spot, reporter);
    if (budget.budget) reporter.answer(budget_line(budget));
    warn_of_other_region(spot.on_demand, cloud.aws(), reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_cost() {
  auto command =
      make_command<CostCommand>("cluster cost", "show what a cluster costs an hour and has cost so far", act);
  command->examples = {"dtrain cluster cost demo", "dtrain cluster cost demo --json"};
  command->see_also = {"cluster plan", "cluster status"};
  return command;
}

}  // namespace dtrain::cli
