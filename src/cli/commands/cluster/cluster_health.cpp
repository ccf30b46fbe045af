#include <fmt/format.h>

#include <algorithm>
#include <future>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/health.hpp>
#include <dtrain/cluster/stack.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "cluster_look.hpp"
#include "cluster_replace.hpp"

namespace dtrain::cli {
namespace {

constexpr int kSecondsForNodes = 18;  // a node gives its GPUs less

struct HealthCommand {
  config::ClusterPlace place;
  bool no_head = false, replace = false, yes = false;
};

void bind(config::OptionSet& set, HealthCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Options");
  bind_no_head(set, options.no_head);
  set.add("--replace", options.replace,
          "start a new worker for each impaired worker, then end the impaired one; the head is never replaced")
      .flag_only = true;
  config::bind_yes(set, options.yes, "replace machines without asking for confirmation");
}

struct Health {
  std::vector<cluster::NodeHealth> nodes{};
  std::string unknown{};  // why the head told nothing; empty: it did, or was not to be asked
  std::string news{};
  std::vector<Replaced> replaced{};
};

// AWS and the head at the same time.
Health look(const HealthCommand& options, ClusterCloud& cloud, const cluster::Fleet& fleet) {
  const bool alone = options.no_head || fleet.on_emr();
  std::future<HeadLook> asked = std::async(std::launch::async, [&] {
    if (alone) return no_look();
    return look_at_head(fleet, Json::object({{"ask", "check"}, {"seconds", kSecondsForNodes}}));
  });
  Health health{.nodes = cluster::read_health(cloud.aws(), fleet)};
  const HeadLook told = asked.get();
  if (!alone) health.unknown = told.unknown;
  health.news = told.news;
  if (told.unknown.empty()) {
    cluster::add_answer_of_head(fleet, told.answer, health.nodes);
  } else {
    for (cluster::NodeHealth& one : health.nodes) one.agent = told.agent_of(one.node, fleet);
  }
  return health;
}

Json gpus_json(const cluster::NodeHealth& one) { return one.checkup ? cluster::to_json(*one.checkup) : Json(); }

Json node_document(const cluster::NodeHealth& one) {
  return Json::object({{"name", one.node.name},
                       {"instance_id", one.node.instance_id},
                       {"state", one.node.state},
                       {"system", one.system},
                       {"instance", one.instance},
                       {"event", one.event},
                       {"agent", enum_name(cluster::kAgentStateNames, one.agent.state)},
                       {"agent_why", one.agent.why},
                       {"gpus_of_type", one.gpus_of_type ? Json(*one.gpus_of_type) : Json()},
                       {"gpus", gpus_json(one)},
                       {"clock_offset_seconds", one.clock ? Json(one.clock->seconds) : Json()},
                       {"clock_within_seconds", one.clock ? Json(one.clock->within) : Json()},
                       {"well", one.well()},
                       {"why", one.why()}});
}

Json document(const cluster::Fleet& fleet, const Health& health, bool well) {
  Json nodes = Json::array(), replaced = Json::array();
  for (const cluster::NodeHealth& one : health.nodes) nodes.push_back(node_document(one));
  for (const Replaced& one : health.replaced) {
    replaced.push_back(Json::object({{"node", one.node},
                                     {"instance_id", one.instance_id},
                                     {"new_node", one.new_node},
                                     {"new_instance_id", one.new_instance_id}}));
  }
  return Json::object({{"schema", "dtrain.cluster-health/1"},
                       {"cluster", fleet.name},
                       {"well", well},
                       {"unknown", health.unknown},
                       {"head_news", health.news},
                       {"nodes", nodes},
                       {"replaced", replaced}});
}

// `--replace` ends only what dtrain started.
std::string next_step(const cluster::Fleet& fleet, const cluster::Node& node) {
  if (node.role == cluster::Role::head) {
    return fmt::format("dtrain cluster remove {0} head --force, then dtrain cluster up {0}", fleet.name);
  }
  if (!is_adopted(node)) return fmt::format("dtrain cluster health {} --replace", fleet.name);
  return fmt::format(
      "dtrain cluster remove {0} {1} --force ends this machine of stack {2}, and dtrain cluster add {0} 1 "
      "starts another one",
      fleet.name, node.name, adopted_stack(fleet));
}

void answer_node(const cluster::Fleet& fleet, const cluster::NodeHealth& one, Reporter& reporter) {
  const std::string clock = one.clock ? fmt::format(", clock {:+.3f} s", one.clock->seconds) : "";
  reporter.answer(fmt::format("{:<21}{:<21}{:<10}agent {}, {}{}", one.node.name, one.node.instance_id,
                              one.well() ? "well" : "impaired", enum_name(cluster::kAgentStateNames, one.agent.state),
                              one.gpu_text(), clock));
  for (const std::string& trouble : one.troubles()) reporter.answer("    " + trouble);
  if (one.well()) return;
  if (!one.node.alive()) return reporter.answer(fmt::format("    next: dtrain cluster start {}", fleet.name));
  reporter.answer("    next: " + next_step(fleet, one.node));
}

void answer_table(const cluster::Fleet& fleet, const Health& health, Reporter& reporter) {
  for (const cluster::NodeHealth& one : health.nodes) answer_node(fleet, one, reporter);
  if (!health.unknown.empty()) {
    reporter.warn(fmt::format("agents, GPUs and clocks are unknown: {}", health.unknown));
  }
}

std::vector<cluster::Node> workers_to_replace(const Health& health) {
  std::vector<cluster::Node> bad;
  for (const cluster::NodeHealth& one : health.nodes) {
    // What is stopped is its owner's to start, and a machine of a stack is its owner's to end.
    if (one.well() || !one.node.alive() || one.node.role != cluster::Role::worker || is_adopted(one.node)) continue;
    bad.push_back(one.node);
  }
  return bad;
}

void replace(const HealthCommand& options, const config::OptionSet& set, ClusterCloud& cloud,
             const cluster::Fleet& fleet, Health& health, Reporter& reporter) {
  const std::vector<cluster::Node> bad = workers_to_replace(health);
  if (bad.empty()) return;
  cluster::require_complete(fleet);
  std::vector<std::string> names, types;
  for (const cluster::Node& node : bad) names.push_back(node.name), types.push_back(node.type);
  cloud.warn_of_prices();
  require_consent(options.yes,
                  fmt::format("cluster {}: replace {} with new machines, for {} an hour?", fleet.name,
                              fmt::join(names, ", "), cost_text(cluster::cost_of(types, cloud.prices()))),
                  reporter);
  health.replaced = replace_workers(cloud, cluster_request(fleet.name, {}, set, fleet), bad, options.no_head, reporter);
  for (const Replaced& one : health.replaced) {
    if (!reporter.json())
      reporter.answer(
          fmt::format("{} ({}) is replaced by {} ({})", one.node, one.instance_id, one.new_node, one.new_instance_id));
  }
}

ExitCode judged(const Health& health) {
  std::size_t bad = 0;
  for (const cluster::NodeHealth& one : health.nodes) bad += one.well() ? 0 : 1;
  if (bad > health.replaced.size()) return ExitCode::impaired;
  return health.unknown.empty() ? ExitCode::ok : ExitCode::partly_done;
}

ExitCode check(const HealthCommand& options, const config::OptionSet& set, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  require_there(fleet, cloud.aws());
  if (options.replace && fleet.on_emr()) {
    throw UsageError("--replace: Amazon EMR replaces impaired nodes automatically", "leave out --replace");
  }
  Health health = look(options, cloud, fleet);
  if (!health.news.empty()) reporter.note(health.news);
  if (!reporter.json()) answer_table(fleet, health, reporter);
  const bool well = std::ranges::all_of(health.nodes, &cluster::NodeHealth::well);
  if (options.replace) replace(options, set, cloud, fleet, health, reporter);
  if (reporter.json()) reporter.answer_json(document(fleet, health, well));
  return judged(health);
}

ExitCode act(const HealthCommand& options, const config::OptionSet& set, Reporter& reporter) {
  return change_cluster(options.place,
                        fmt::format("run the same command again to continue; dtrain cluster status {} lists the nodes",
                                    options.place.name),
                        [&] { return check(options, set, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_health() {
  auto command = make_command<HealthCommand>("cluster health", "check the health of a cluster's machines", act);
  command->examples = {"dtrain cluster health demo", "dtrain cluster health demo --json",
                       "dtrain cluster health demo --replace --yes"};
  command->see_also = {"cluster status", "cluster remove"};
  return command;
}

}  // namespace dtrain::cli
