#include <fmt/format.h>

#include "cluster_options.hpp"
#include "command.hpp"

namespace dtrain::cli {
namespace {

struct StatusCommand {
  ClusterPlace place;
};

void bind(OptionSet& set, StatusCommand& options) { bind_cluster(set, options.place); }

Json document(const std::string& region, const cluster::Fleet& fleet) {
  Json nodes = Json::array(), options = Json::object();
  for (const cluster::Node& node : fleet.nodes) nodes.push_back(node_json(node));
  for (const auto& [name, text] : fleet.options) options[name] = text;
  return Json::object({{"schema", "dtrain.cluster-status/1"},
                       {"cluster", fleet.name},
                       {"region", region},
                       {"exists", fleet.exists()},
                       {"workers", fleet.workers().size()},
                       {"nodes", nodes},
                       {"security_group", fleet.group ? fleet.group->id : ""},
                       {"launch_template", fleet.launch_template ? fleet.launch_template->id : ""},
                       {"emr", fleet.emr ? fleet.emr->id : ""},
                       {"emr_state", fleet.emr ? fleet.emr->state : ""},
                       {"options", options},
                       {"dollars_per_hour", cluster::cost_of(fleet).hourly},
                       {"dollars_so_far", cluster::cost_so_far(fleet)}});
}

void answer_table(const cluster::Fleet& fleet, Console& console) {
  console.answer(fmt::format("cluster {}: {} workers, ${:.2f} an hour, ${:.2f} so far", fleet.name,
                             fleet.workers().size(), cluster::cost_of(fleet).hourly, cluster::cost_so_far(fleet)));
  if (fleet.on_emr()) {
    console.answer(fleet.emr ? fmt::format("EMR cluster {} is {}", fleet.emr->id, fleet.emr->state)
                             : fmt::format("its EMR cluster has ended; dtrain cluster up {0} makes another, "
                                           "dtrain cluster down {0} removes the rest",
                                           fleet.name));
  }
  console.answer(console.paint_answer(
      Style::heading, fmt::format("{:<21}{:<21}{:<10}{:<16}{:<16}{:<12}{:<14}{:<10}{}", "NODE", "INSTANCE", "STATE",
                                  "PRIVATE", "PUBLIC", "ZONE", "TYPE", "MARKET", "ELASTIC")));
  for (const cluster::Node& node : fleet.nodes) {
    console.answer(fmt::format("{:<21}{:<21}{:<10}{:<16}{:<16}{:<12}{:<14}{:<10}{}", node.name, node.instance_id,
                               node.state, node.private_ip, node.public_ip, node.zone, node.type, node.market,
                               node.elastic_status));
  }
}

ExitCode act(const StatusCommand& options, const OptionSet&, Console& console) {
  ClusterCloud cloud(options.place, console);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  if (console.json()) {
    console.answer_json(document(cloud.aws().region(), fleet));
  } else if (!fleet.exists()) {
    console.answer(fmt::format("there is no cluster {} in {}", fleet.name, cloud.aws().region()));
  } else {
    answer_table(fleet, console);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_status() {
  auto command = make_command<StatusCommand>("cluster status", "the nodes of a cluster, and what they cost", act);
  command->examples = {"dtrain cluster status demo", "dtrain cluster status demo --json"};
  command->see_also = {"cluster up", "cluster add", "cluster remove"};
  return command;
}

}  // namespace dtrain::cli
