#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/tagged_prices.hpp>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "cluster_cloud.hpp"
#include "cluster_spot.hpp"
#include "forecast_view.hpp"
#include "job/tag_sync/tag_sync_job.hpp"
#include "keep/cluster_budget.hpp"

namespace dtrain::cli {
namespace {

struct CostCommand {
  config::ClusterPlace place;
  bool by_day = false;
  ForecastChoice forecast;
};

void bind(config::OptionSet& set, CostCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Options");
  set.add("--by-day", options.by_day,
          "show what the machines that AWS still lists cost on each day (UTC); --json always has the days")
      .flag_only = true;
  bind_forecast(set, options.forecast);
}

// Of the training on the cluster.
board::Forecast forecast_of_fleet(const cluster::Fleet& fleet, const std::string& job_dir) {
  if (const auto registry = cluster::registry_of(fleet.name)) {
    return forecast_in(job_dir.empty() ? registry->shared_folder : job_dir);
  }
  cluster::ClusterHead head(fleet, std::chrono::seconds(0));
  const auto job = job::make_remote_job(head, job_dir);
  job->look(fleet);
  return forecast_on(head.session(), job->folder());
}

std::string day_text(cluster::UnixTime day) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(day.count())));
}

// What the cluster counted itself and is on no day that AWS knows; nullopt: it counted nothing, or not all of it.
std::optional<double> before_the_days(const cluster::Fleet& fleet, const cluster::DayCosts& days,
                                      const BudgetView& budget) {
  if (cluster::tagged_spending(fleet).at.count() == 0 || !budget.spending.unpriced.empty()) return std::nullopt;
  double left = budget.spending.dollars;
  for (const cluster::DayCost& one : days.days) left -= one.cost.hourly;
  return std::max(left, 0.0);
}

Json days_json(const cluster::DayCosts& days) {
  Json list = Json::array();
  for (const cluster::DayCost& one : days.days) {
    list.push_back(Json::object({{"day", day_text(one.day)},
                                 {"machine_hours", one.hours},
                                 {"dollars", hourly_json(one.cost)},
                                 {"unpriced", unpriced_json(one.cost)}}));
  }
  return list;
}

Json by_day_json(const cluster::Fleet& fleet, const cluster::DayCosts& days, const BudgetView& budget) {
  const auto before = before_the_days(fleet, days, budget);
  return Json::object({{"days", days_json(days)},
                       {"dollars_before", before ? Json(*before) : Json()},
                       {"unknown_end", json_texts(days.unknown)}});
}

void answer_days(const cluster::Fleet& fleet, const cluster::DayCosts& days, const BudgetView& budget,
                 Reporter& reporter) {
  std::vector<std::vector<std::string>> rows{{"DAY (UTC)", "MACHINE HOURS", "COST"}};
  const auto before = before_the_days(fleet, days, budget);
  rows.push_back({"earlier", "unknown", before ? fmt::format("${:.2f}", *before) : "unknown"});
  for (const cluster::DayCost& one : days.days) {
    rows.push_back({day_text(one.day), fmt::format("{:.1f}", one.hours), cost_text(one.cost)});
  }
  answer_rows(rows, reporter);
  reporter.note(
      "the days hold the machines that AWS lists, each since its last start: those that ended more than an hour ago, "
      "and "
      "what ran before a `stop`, count as earlier; disks, traffic and shared folders are not counted");
  if (!days.unknown.empty()) {
    reporter.warn(fmt::format("AWS does not say when {} ended, so {} not counted", join(days.unknown, ", "),
                              days.unknown.size() == 1 ? "it is" : "they are"));
  }
}

Json document(const cluster::Fleet& fleet, const std::vector<cluster::Kept>& storage, const SpotCost& spot,
              const cluster::StoppedDisks& disks, const BudgetView& budget, const cluster::DayCosts& days,
              const std::optional<board::Forecast>& forecast) {
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
                       {"by_day", by_day_json(fleet, days, budget)},
                       {"forecast", forecast ? forecast_json(*forecast, spot.cost(), false) : Json()},
                       {"prices_of", spot.on_demand.region},
                       {"prices_published", spot.on_demand.published},
                       {"spot", spot_json(spot)},
                       {"emr", fleet.emr ? fleet.emr->id : ""},
                       {"without_price_of_emr", fleet.on_emr()},
                       {"unpriced", unpriced_json(cost)},
                       {"nodes", nodes},
                       {"storage", systems},
                       {"stopped", stopped_json(disks)}});
}

std::string price_text(const cluster::Node& node, const SpotCost& spot) {
  if (!node.alive()) return node.state;
  const auto price = spot.on_demand.of(node.type);
  return price ? fmt::format("${:.3f} an hour", *price) : "price unknown";
}

void answer_table(const cluster::Fleet& fleet, const std::vector<cluster::Kept>& storage, const SpotCost& spot,
                  const cluster::StoppedDisks& disks, Reporter& reporter) {
  if (fleet.on_emr()) {
    reporter.answer(fmt::format("{}: these are the prices of its instances; EMR charges an extra fee for each instance",
                                fleet.emr ? fmt::format("EMR cluster {} ({})", fleet.emr->id, fleet.emr->state)
                                          : "an EMR cluster, which has ended"));
  }
  for (const cluster::Node& node : fleet.nodes) {
    reporter.answer(fmt::format("{:<21}{:<16}{:<11}{:>8.1f} h  {}", node.name, node.type,
                                enum_name(cluster::kMarketNames, node.market), cluster::hours_of(node),
                                price_text(node, spot)));
  }
  for (const cluster::Kept& one : storage) {
    reporter.answer(fmt::format("{:<21}{:<37}   ${:.2f} a month", one.file_system, "shared files", one.monthly));
  }
  const cluster::Cost cost = cluster::cost_of(fleet, spot.on_demand);
  if (!disks.text().empty()) reporter.answer(disks.text());
  const bool all_off = !fleet.nodes.empty() && std::ranges::none_of(fleet.nodes, &cluster::Node::alive);
  reporter.answer(all_off ? "no machine runs" : cost_text(cost) + " an hour");
  if (cost.hourly > 0) {
    reporter.answer(fmt::format("${:.2f} a day, ${:.2f} so far", cost.hourly * cluster::kHoursOfADay,
                                cluster::cost_so_far(fleet, spot.on_demand)));
  }
  reporter.note(spot.on_demand.text() + "; spot instances cost less, and disks and traffic cost extra");
  answer_spot(spot, reporter);
}

// File systems that belong to the cluster, of EFS and of FSx for Lustre.
std::vector<cluster::Kept> storage_of(net::AwsCalls& aws, const cluster::Fleet& fleet) {
  std::vector<cluster::FileSystem> systems = cluster::own_file_systems(aws, fleet.name);
  for (cluster::FileSystem& one : cluster::lustre_of(aws, fleet)) systems.push_back(std::move(one));
  std::vector<cluster::Kept> storage;
  for (const cluster::FileSystem& one : systems) storage.push_back({one.id, cluster::monthly_price(one)});
  return storage;
}

ExitCode act(const CostCommand& options, const config::OptionSet&, Reporter& reporter) {
  require_forecast(options.forecast);
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  const std::vector<cluster::Kept> storage = storage_of(cloud.aws(), fleet);
  if (storage.empty()) require_there(fleet, cloud.aws());
  const cluster::PriceList prices = cluster::with_tagged_prices(fleet, cloud.prices());
  const SpotCost spot = read_spot_cost(cloud.aws(), cluster::machines_of(fleet), prices);
  const BudgetView budget = read_budget(cloud, fleet);
  const cluster::StoppedDisks disks = cluster::read_stopped_disks(cloud.aws(), fleet, prices);
  const cluster::DayCosts days =
      cluster::cost_by_day(fleet, cluster::node_price(prices, budget.spot), cluster::aws_time(cloud.aws()));
  const auto forecast =
      options.forecast.wanted ? std::optional(forecast_of_fleet(fleet, options.forecast.job_dir)) : std::nullopt;
  if (reporter.json()) {
    reporter.answer_json(document(fleet, storage, spot, disks, budget, days, forecast));
  } else if (options.by_day) {
    answer_days(fleet, days, budget, reporter);
    warn_of_other_region(spot.on_demand, cloud.aws(), reporter);
  } else {
    answer_table(fleet, storage, spot, disks, reporter);
    if (budget.budget) reporter.answer(budget_line(budget));
    if (forecast) reporter.answer(forecast_line(*forecast, spot.cost(), false));
    warn_of_other_region(spot.on_demand, cloud.aws(), reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_cost() {
  auto command =
      make_command<CostCommand>("cluster cost", "show what a cluster costs an hour and has cost so far", act);
  command->examples = {"dtrain cluster cost demo", "dtrain cluster cost demo --by-day",
                       "dtrain cluster cost demo --forecast", "dtrain cluster cost demo --json"};
  command->see_also = {"cluster plan", "cluster status"};
  return command;
}

}  // namespace dtrain::cli
