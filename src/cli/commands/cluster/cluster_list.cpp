#include <fmt/format.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"

namespace dtrain::cli {
namespace {

struct ListCommand {
  config::ClusterPlace place;
};

void bind(config::OptionSet& set, ListCommand& options) {
  set.group("Account");
  config::bind_account(set, options.place);
}

const char* state_of(const cluster::Fleet& fleet) {
  if (fleet.on_emr()) return "on EMR";
  if (fleet.nodes.empty()) return "no machines";
  const cluster::Node* head = fleet.head();
  if (!head) return "no head";
  if (!head->alive()) return "head stopped";
  if (!std::ranges::all_of(fleet.nodes, &cluster::Node::alive)) return "partly stopped";
  const bool all_run = std::ranges::all_of(fleet.nodes, [](const auto& one) { return one.state == "running"; });
  return all_run ? "running" : "starting";
}

std::vector<std::string> types_in(const cluster::Fleet& fleet) {
  std::vector<std::string> types;
  for (const cluster::Node& node : fleet.nodes) {
    if (std::ranges::find(types, node.type) == types.end()) types.push_back(node.type);
  }
  return types;
}

// The age of a cluster is that of its oldest machine.
double age_in_hours(const cluster::Fleet& fleet) {
  double age = 0;
  for (const cluster::Node& node : fleet.nodes) age = std::max(age, cluster::hours_of(node));
  return age;
}

std::string age_text(double hours) {
  return hours < 2 * cluster::kHoursOfADay ? fmt::format("{:.1f} h", hours)
                                           : fmt::format("{:.1f} d", hours / cluster::kHoursOfADay);
}

Json cluster_json(const cluster::Fleet& fleet) {
  Json types = Json::array();
  for (const std::string& type : types_in(fleet)) types.push_back(type);
  const cluster::Cost cost = cluster::cost_of(fleet);
  return Json::object({{"name", fleet.name},
                       {"state", state_of(fleet)},
                       {"machines", fleet.nodes.size()},
                       {"types", types},
                       {"age_hours", age_in_hours(fleet)},
                       {"dollars_per_hour", hourly_json(cost)},
                       {"unpriced", unpriced_json(cost)}});
}

void answer_clusters(const std::vector<cluster::Fleet>& fleets, Reporter& reporter) {
  std::vector<std::vector<std::string>> rows{{"NAME", "STATE", "MACHINES", "TYPE", "AGE", "COST AN HOUR"}};
  for (const cluster::Fleet& fleet : fleets) {
    rows.push_back({fleet.name, state_of(fleet), std::to_string(fleet.nodes.size()),
                    fmt::format("{}", fmt::join(types_in(fleet), ",")), age_text(age_in_hours(fleet)),
                    cost_text(cluster::cost_of(fleet))});
  }
  answer_rows(rows, reporter);
}

ExitCode act(const ListCommand& options, const config::OptionSet&, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter, ClusterCloud::Scope::region);
  const std::vector<cluster::Fleet> fleets = cluster::read_fleets(cloud.aws());
  if (reporter.json()) {
    Json clusters = Json::array();
    for (const cluster::Fleet& fleet : fleets) clusters.push_back(cluster_json(fleet));
    reporter.answer_json(
        Json::object({{"schema", "dtrain.cluster-list/1"}, {"region", cloud.aws().region()}, {"clusters", clusters}}));
  } else if (fleets.empty()) {
    reporter.answer(fmt::format("there is no cluster in {}", cloud.aws().region()));
  } else {
    answer_clusters(fleets, reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_list() {
  auto command = make_command<ListCommand>("cluster list", "list the clusters of an account in one region", act);
  command->examples = {"dtrain cluster list", "dtrain cluster list --region eu-west-1 --json"};
  command->see_also = {"cluster status", "cluster cost", "cluster down"};
  return command;
}

}  // namespace dtrain::cli
