#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/compat_files.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "cluster_emr_env.hpp"

namespace dtrain::cli {
namespace {

struct EnvCommand {
  config::ClusterPlace place;
  EmrAdoption emr;
};

void bind(config::OptionSet& set, EnvCommand& options) {
  set.group("Cluster");
  set.add("NAME", options.place.name, "NAME", "name of the cluster");
  config::bind_account(set, options.place);
  bind(set, options.emr);
}

std::vector<std::string> variables_of(net::AwsCalls& aws, const std::string& name) {
  const cluster::Fleet fleet = cluster::read_fleet(aws, name);
  if (fleet.emr) {
    throw UsageError(fmt::format("cluster {} is one of EMR", name),
                     fmt::format("dtrain cluster env --emr {}", fleet.emr->id));
  }
  cluster::ClusterHead head(fleet, std::chrono::seconds(0));
  const Json list = head.ask(Json::object({{"ask", "list"}}));
  cluster::ClusterFacts facts = cluster::cluster_facts_from_json(list.at("facts"));
  for (const Json& node : list.at("nodes").as_array()) {
    facts.gpus = std::max(facts.gpus, static_cast<int>(node.at("gpus").as_integer()));
  }
  return cluster::cluster_variables(facts);
}

void answer(const std::string& name, const std::vector<std::string>& variables, Reporter& reporter) {
  Json document = Json::object({{"schema", "dtrain.cluster-env/1"}, {"cluster", name}, {"variables", Json::array()}});
  for (const std::string& variable : variables) {
    document["variables"].push_back(variable);
    if (!reporter.json()) reporter.answer("export " + variable);
  }
  if (reporter.json()) reporter.answer_json(document);
}

ExitCode act(const EnvCommand& options, const config::OptionSet&, Reporter& reporter) {
  if (options.place.name.empty() == options.emr.id.empty()) {
    throw UsageError("cluster env: give either NAME or --emr",
                     "NAME for a cluster of `dtrain cluster up`, --emr j-... for a cluster of Amazon EMR");
  }
  config::ClusterPlace place = options.place;
  if (place.name.empty()) place.name = options.emr.id;
  ClusterCloud cloud(place, reporter);
  if (options.emr.id.empty()) {
    answer(place.name, variables_of(cloud.aws(), place.name), reporter);
    return ExitCode::ok;
  }
  const AdoptedEmr adopted = adopt_emr(cloud.aws(), options.emr, reporter);
  answer(place.name, adopted.variables, reporter);
  return adopted.code;
}

}  // namespace

std::unique_ptr<Command> make_cluster_env() {
  auto command = make_command<EnvCommand>(
      "cluster env", "print the export lines of a cluster for programs that use CloudFormation templates or EMR", act);
  command->examples = {"dtrain cluster env demo", "dtrain cluster env --emr j-2AXXXXXXGAPLF --everywhere"};
  command->see_also = {"cluster status", "cluster ssh"};
  return command;
}

}  // namespace dtrain::cli
