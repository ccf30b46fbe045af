#include <fmt/format.h>

#include <algorithm>

#include <dtrain/cluster/compat_files.hpp>

#include "cluster_head.hpp"
#include "cluster_options.hpp"
#include "command.hpp"

namespace dtrain::cli {
namespace {

struct EnvCommand {
  ClusterPlace place;
};

void bind(OptionSet& set, EnvCommand& options) { bind_cluster(set, options.place); }

ExitCode act(const EnvCommand& options, const OptionSet&, Console& console) {
  ClusterCloud cloud(options.place, console);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  ClusterHead head(fleet, std::chrono::seconds(0));
  const Json list = head.ask(Json::object({{"ask", "list"}}));
  cluster::ClusterFacts facts = cluster::cluster_facts_from_json(list.at("facts"));
  for (const Json& node : list.at("nodes").as_array()) {
    facts.gpus = std::max(facts.gpus, static_cast<int>(node.at("gpus").as_integer()));
  }
  Json document =
      Json::object({{"schema", "dtrain.cluster-env/1"}, {"cluster", fleet.name}, {"variables", Json::array()}});
  for (const std::string& variable : cluster::cluster_variables(facts)) {
    document["variables"].push_back(variable);
    if (!console.json()) console.answer("export " + variable);
  }
  if (console.json()) console.answer_json(document);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_env() {
  auto command = make_command<EnvCommand>(
      "cluster env", "the export lines by which programs of the CloudFormation templates know a cluster", act);
  command->examples = {"dtrain cluster env demo"};
  command->see_also = {"cluster status", "cluster ssh"};
  return command;
}

}  // namespace dtrain::cli
