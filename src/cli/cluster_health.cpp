#include <fmt/format.h>

#include <algorithm>

#include <dtrain/cluster/health.hpp>

#include "cluster_options.hpp"
#include "command.hpp"

namespace dtrain::cli {
namespace {

struct HealthCommand {
  ClusterPlace place;
};

void bind(OptionSet& set, HealthCommand& options) { bind_cluster(set, options.place); }

Json document(const cluster::Fleet& fleet, const std::vector<cluster::NodeHealth>& all, bool well) {
  Json nodes = Json::array();
  for (const cluster::NodeHealth& one : all) {
    nodes.push_back(Json::object({{"name", one.node.name},
                                  {"instance_id", one.node.instance_id},
                                  {"state", one.node.state},
                                  {"system", one.system},
                                  {"instance", one.instance},
                                  {"event", one.event},
                                  {"well", one.well()},
                                  {"why", one.why()}}));
  }
  return Json::object(
      {{"schema", "dtrain.cluster-health/1"}, {"cluster", fleet.name}, {"well", well}, {"nodes", nodes}});
}

ExitCode act(const HealthCommand& options, const OptionSet&, Console& console) {
  ClusterCloud cloud(options.place, console);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  require_there(fleet, cloud.aws());
  const std::vector<cluster::NodeHealth> all = cluster::read_health(cloud.aws(), fleet);
  const bool well = std::ranges::all_of(all, [](const cluster::NodeHealth& one) { return one.well(); });
  if (console.json()) console.answer_json(document(fleet, all, well));
  for (const cluster::NodeHealth& one : all) {
    if (console.json()) break;
    console.answer(fmt::format("{:<21}{:<21}{}", one.node.name, one.node.instance_id, one.well() ? "well" : one.why()));
    if (!one.well()) {
      console.answer(fmt::format("    next: dtrain cluster remove {0} {1}, then dtrain cluster up {0}", fleet.name,
                                 one.node.name));
    }
  }
  return well ? ExitCode::ok : ExitCode::partly_done;
}

}  // namespace

std::unique_ptr<Command> make_cluster_health() {
  auto command = make_command<HealthCommand>("cluster health", "whether the machines of a cluster are well", act);
  command->examples = {"dtrain cluster health demo", "dtrain cluster health demo --json"};
  command->see_also = {"cluster status", "cluster remove"};
  return command;
}

}  // namespace dtrain::cli
