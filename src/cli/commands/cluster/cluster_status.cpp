#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/health.hpp>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "cluster_cloud.hpp"
#include "cluster_look.hpp"

namespace dtrain::cli {
namespace {

struct StatusCommand {
  config::ClusterPlace place;
  bool no_head = false;
};

void bind(config::OptionSet& set, StatusCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Options");
  bind_no_head(set, options.no_head);
}

std::string counted_type(const cluster::Node& node) {
  return node.weight == 1 ? node.type : fmt::format("{}:{}", node.type, node.weight);
}

// What the machines reported last, by instance id; those that are well are left out.
std::map<std::string, std::string> troubles_in(const cluster::Fleet& fleet, const HeadLook& look) {
  std::map<std::string, std::string> troubles;
  if (!look.unknown.empty() || fleet.emr) return troubles;
  std::vector<cluster::NodeHealth> nodes;
  for (const cluster::Node& node : fleet.nodes) nodes.push_back({.node = node});
  cluster::add_answer_of_head(fleet, look.answer, nodes);
  for (const cluster::NodeHealth& one : nodes) {
    if (const auto all = one.reported(); !all.empty()) troubles[one.node.instance_id] = join(all, "; ");
  }
  return troubles;
}

Json document(const std::string& region, const cluster::Fleet& fleet, const HeadLook& look,
              const cluster::StoppedDisks& disks, const cluster::PriceList& prices) {
  Json nodes = Json::array(), options = Json::object();
  const std::map<std::string, std::string> troubles = troubles_in(fleet, look);
  for (const cluster::Node& node : fleet.nodes) {
    const cluster::AgentWord agent = look.agent_of(node, fleet);
    Json one = node_json(node);
    one["agent"] = enum_name(cluster::kAgentStateNames, agent.state);
    one["agent_why"] = agent.why;
    const auto trouble = troubles.find(node.instance_id);
    one["trouble"] = trouble == troubles.end() ? "" : trouble->second;
    nodes.push_back(std::move(one));
  }
  for (const auto& [name, text] : fleet.options) options[name] = text;
  return Json::object({{"schema", "dtrain.cluster-status/1"},
                       {"cluster", fleet.name},
                       {"region", region},
                       {"exists", fleet.exists()},
                       {"workers", fleet.workers().size()},
                       {"nodes", nodes},
                       {"head_news", look.news},
                       {"security_group", fleet.group ? fleet.group->id : ""},
                       {"launch_template", fleet.launch_template ? fleet.launch_template->id : ""},
                       {"emr", fleet.emr ? fleet.emr->id : ""},
                       {"emr_state", fleet.emr ? fleet.emr->state : ""},
                       {"options", options},
                       {"dollars_per_hour", hourly_json(cluster::cost_of(fleet, prices))},
                       {"unpriced", unpriced_json(cluster::cost_of(fleet, prices))},
                       {"dollars_so_far", so_far_json(fleet, prices)},
                       {"stopped", stopped_json(disks)}});
}

void answer_cluster(const cluster::Fleet& fleet, const HeadLook& look, const cluster::StoppedDisks& disks,
                    const cluster::PriceList& prices, Reporter& reporter) {
  const cluster::Cost cost = cluster::cost_of(fleet, prices);
  const std::string so_far =
      cost.hourly > 0 ? fmt::format(", ${:.2f} so far", cluster::cost_so_far(fleet, prices)) : "";
  const bool all_off = !fleet.nodes.empty() && std::ranges::none_of(fleet.nodes, &cluster::Node::alive);
  reporter.answer(fmt::format("cluster {}: {}, {}{}", fleet.name, count_text(fleet.workers().size(), "worker"),
                              all_off ? "no machine runs" : cost_text(cost) + " an hour", so_far));
  if (!disks.text().empty()) reporter.answer(disks.text());
  if (fleet.on_emr()) {
    reporter.answer(fleet.emr ? fmt::format("EMR cluster {} is {}", fleet.emr->id, fleet.emr->state)
                              : fmt::format("its EMR cluster has ended; dtrain cluster up {0} creates a new one, "
                                            "dtrain cluster down {0} removes the rest",
                                            fleet.name));
  }
  std::vector<std::vector<std::string>> rows{
      {"NODE", "INSTANCE", "STATE", "PRIVATE", "PUBLIC", "ZONE", "TYPE", "MARKET", "ELASTIC", "AGENT"}};
  for (const cluster::Node& node : fleet.nodes) {
    rows.push_back({node.name, node.instance_id, node.state, node.private_ip, node.public_ip, node.zone,
                    counted_type(node), std::string(enum_name(cluster::kMarketNames, node.market)), node.elastic_status,
                    look.agent_of(node, fleet).text()});
  }
  answer_rows(rows, reporter);
  const std::map<std::string, std::string> troubles = troubles_in(fleet, look);
  for (const cluster::Node& node : fleet.nodes) {
    if (const auto trouble = troubles.find(node.instance_id); trouble != troubles.end()) {
      reporter.answer(fmt::format("{} is impaired: {}", node.name, trouble->second));
    }
  }
}

ExitCode act(const StatusCommand& options, const config::OptionSet&, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  if (!reporter.json()) require_there(fleet, cloud.aws());  // a document says it in `exists`
  const HeadLook look =
      options.no_head || !fleet.exists() ? no_look() : look_at_head(fleet, Json::object({{"ask", "list"}}));
  if (!look.news.empty()) reporter.note(look.news);
  const cluster::StoppedDisks disks = cluster::read_stopped_disks(cloud.aws(), fleet, cloud.prices());
  if (reporter.json()) {
    reporter.answer_json(document(cloud.aws().region(), fleet, look, disks, cloud.prices()));
  } else {
    answer_cluster(fleet, look, disks, cloud.prices(), reporter);
  }
  if (const auto note = cluster::stopped_note(fleet)) reporter.warn(*note);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_status() {
  auto command = make_command<StatusCommand>("cluster status", "list the nodes of a cluster and their cost", act);
  command->examples = {"dtrain cluster status demo", "dtrain cluster status demo --json"};
  command->see_also = {"cluster up", "cluster add", "cluster remove"};
  return command;
}

}  // namespace dtrain::cli
