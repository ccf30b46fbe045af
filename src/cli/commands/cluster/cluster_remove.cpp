#include <fmt/format.h>

#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/emr.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "job/coordinator/cluster_bridge.hpp"

namespace dtrain::cli {
namespace {

constexpr const char* kEndedByEmr =
    "is taken out of its group: EMR ends it once YARN's work there is done, and keeps the group smaller by one; "
    "dtrain cluster status shows when it is gone";

struct RemoveCommand {
  config::ClusterPlace place;
  std::string node;
  bool yes = false, force = false, no_wait = false;
};

void bind(config::OptionSet& set, RemoveCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Which node");
  set.add("NODE", options.node, "NODE", "its name or instance id, as `cluster status` shows it").required = true;
  set.add("--force", options.force, "also the head, a base worker, or below --min-workers").flag_only = true;
  config::bind_yes(set, options.yes, "end it without asking");
  set.add("--no-wait", options.no_wait, "return when the machine is told to end");
}

void check_may_go(const RemoveCommand& options, const cluster::Node& node) {
  if (options.force) return;
  const char* why = node.role == cluster::Role::head ? "the head, which holds the cluster together"
                    : node.base ? "one of the workers that `up` started, which it would start again"
                                : nullptr;
  if (!why) return;
  throw UsageError(fmt::format("{} of cluster {} is {}", node.name, options.place.name, why),
                   "say --force to end it all the same");
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

// Without a head nobody can tell the job: it will notice.
void leave_job(const RemoveCommand& options, ClusterCloud& cloud, const cluster::Fleet& fleet,
               const cluster::Node& node, Reporter& reporter) {
  std::optional<cluster::ClusterHead> head;
  try {
    head.emplace(fleet, std::chrono::seconds(0));
  } catch (const RemoteError& error) {
    reporter.warn(
        fmt::format("the head is not reachable, so {} is ended without a word to a job: {}", node.name, error.what()));
    return;
  }
  const std::chrono::seconds patience(options.place.timeout_seconds);
  if (job::drain_node(cloud.aws(), fleet, node, *job::make_far_job(*head, {}), patience)) return;
  throw Error(fmt::format("{} has not left the job within {} s", node.name, patience.count()),
              "say --force to end it all the same");
}

void end(const RemoveCommand& options, ClusterCloud& cloud, const cluster::Fleet& fleet, const cluster::Node& node,
         Reporter& reporter) {
  if (fleet.emr) return cluster::shrink_emr(cloud.aws(), *fleet.emr, node.instance_id);
  if (!options.force && !options.no_wait) leave_job(options, cloud, fleet, node, reporter);
  cluster::end_node(cloud.work(!options.no_wait), node);
}

std::string question(const cluster::Fleet& fleet, const cluster::Node& node) {
  if (!fleet.emr) return fmt::format("cluster {}: end {} ({})?", fleet.name, node.name, node.instance_id);
  return fmt::format("cluster {}: have EMR end {}? A job of dtrain's there is not asked to let it go first", fleet.name,
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
      throw UsageError("EMR ends when its primary node does", fmt::format("dtrain cluster down {}", fleet.name));
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
                                !node       ? "was gone already"
                                : fleet.emr ? kEndedByEmr
                                            : "is ended"));
  }
  return ExitCode::ok;
}

ExitCode act(const RemoveCommand& options, const config::OptionSet&, Reporter& reporter) {
  return change_cluster(options.place, [&] { return remove(options, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_remove() {
  auto command = make_command<RemoveCommand>("cluster remove", "end one node of a cluster", act);
  command->examples = {"dtrain cluster remove demo w0003", "dtrain cluster remove demo w0001 --force --yes"};
  command->see_also = {"cluster add", "cluster status", "cluster down"};
  return command;
}

}  // namespace dtrain::cli
