#include <fmt/format.h>

#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/emr.hpp>
#include <dtrain/cluster/healer.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "job/tag_sync/sync.hpp"

namespace dtrain::cli {
namespace {

constexpr const char* kEndedByEmr =
    "leaves its instance group: EMR ends it when its YARN work is done and reduces the group by one; dtrain cluster "
    "status shows when it is gone";

struct RemoveCommand {
  config::ClusterPlace place;
  std::string node;
  bool yes = false, force = false, no_wait = false;
};

void bind(config::OptionSet& set, RemoveCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Node");
  set.add("NODE", options.node, "NODE", "name or instance id of the node, as shown by `dtrain cluster status`")
      .required = true;
  set.add("--force", options.force, "allow ending the head or a base worker, or going below --min-workers").flag_only =
      true;
  config::bind_yes(set, options.yes, "end the machines without asking for confirmation");
  set.add("--no-wait", options.no_wait, "return once the termination is requested");
}

void check_may_go(const RemoveCommand& options, const cluster::Node& node) {
  if (options.force) return;
  const char* why = node.role == cluster::Role::head ? "the head, which the other nodes depend on"
                    : node.base                      ? "a base worker, which the next `up` would start again"
                                                     : nullptr;
  if (!why) return;
  throw UsageError(fmt::format("{} of cluster {} is {}", node.name, options.place.name, why), "--force ends it anyway");
}

Json document(const cluster::Fleet& fleet, const std::string& node, const cluster::Node* found) {
  return Json::object({{"schema", "dtrain.cluster-remove/1"},
                       {"cluster", fleet.name},
                       {"node", node},
                       {"instance_id", found ? found->instance_id : ""},
                       {"was_there", found != nullptr}});
}

bool is_ending(const cluster::Fleet& fleet, const std::string& node) {
  for (const cluster::Node& one : fleet.ending) {
    if (one.name == node || one.instance_id == node) return true;
  }
  return false;
}

// Without a head the job is not informed; it notices the loss by itself.
void leave_job(const RemoveCommand& options, ClusterCloud& cloud, const cluster::Fleet& fleet,
               const cluster::Node& node, Reporter& reporter) {
  std::optional<cluster::ClusterHead> head;
  try {
    head.emplace(fleet, std::chrono::seconds(0));
  } catch (const RemoteError& error) {
    reporter.warn(fmt::format("the head is unreachable, so {} is ended without removing it from a job first: {}",
                              node.name, error.what()));
    return;
  }
  const std::chrono::seconds patience(options.place.timeout_seconds);
  if (job::drain_node(cloud.aws(), fleet, node, *job::make_remote_job(*head, {}), patience)) return;
  throw Error(fmt::format("{} has not left the job within {} s", node.name, patience.count()),
              "--force ends it anyway");
}

void end(const RemoveCommand& options, ClusterCloud& cloud, const cluster::Fleet& fleet, const cluster::Node& node,
         Reporter& reporter) {
  if (fleet.emr) return cluster::shrink_emr(cloud.aws(), *fleet.emr, node.instance_id);
  if (!options.force && !options.no_wait) leave_job(options, cloud, fleet, node, reporter);
  if (node.role == cluster::Role::worker) cluster::count_out(cloud.aws(), fleet, node);
  cluster::end_node(cloud.context(!options.no_wait), node);
}

std::string question(const cluster::Fleet& fleet, const cluster::Node& node) {
  if (!fleet.emr) return fmt::format("cluster {}: end {} ({})?", fleet.name, node.name, node.instance_id);
  return fmt::format("cluster {}: let EMR end {}? It is not removed from a running dtrain job first", fleet.name,
                     node.name);
}

ExitCode remove(const RemoveCommand& options, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  const cluster::Node* node = fleet.find(options.node);
  if (!node && !is_ending(fleet, options.node)) {
    throw UsageError(fmt::format("cluster {} has no node {}", fleet.name, options.node),
                     fmt::format("dtrain cluster status {} lists them", fleet.name));
  }
  if (node) {
    if (fleet.emr && node->role == cluster::Role::head) {
      throw UsageError("the primary node cannot be removed: without it EMR ends the cluster",
                       fmt::format("dtrain cluster down {}", fleet.name));
    }
    check_may_go(options, *node);
    require_consent(options.yes, question(fleet, *node), reporter);
    end(options, cloud, fleet, *node, reporter);
    cluster::renew_ssh_entries(cloud.aws(), fleet.name, reporter);
  }
  if (reporter.json()) {
    reporter.answer_json(document(fleet, options.node, node));
  } else {
    reporter.answer(fmt::format("{} {}", options.node,
                                !node       ? "had already ended"
                                : fleet.emr ? kEndedByEmr
                                            : "has ended"));
  }
  return ExitCode::ok;
}

ExitCode act(const RemoveCommand& options, const config::OptionSet&, Reporter& reporter) {
  return change_cluster(options.place, [&] { return remove(options, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_remove() {
  auto command = make_command<RemoveCommand>("cluster remove", "remove one node from a cluster", act);
  command->examples = {"dtrain cluster remove demo w0003", "dtrain cluster remove demo w0001 --force --yes"};
  command->see_also = {"cluster add", "cluster status", "cluster down"};
  return command;
}

}  // namespace dtrain::cli
