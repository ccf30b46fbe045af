#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/emr.hpp>
#include <dtrain/cluster/healer.hpp>
#include <dtrain/cluster/ssh_entries.hpp>
#include <dtrain/cluster/wish.hpp>

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
  set.add("--no-wait", options.no_wait, "return once the node has left the job and its termination is requested");
}

// The cluster as it is wanted now: a base worker that was removed is wanted no longer.
cluster::Spec spec_now(const cluster::Fleet& fleet) {
  cluster::Spec spec = cluster_request(fleet.name, {}, config::OptionSet(), fleet).spec;
  try {
    if (const auto wish = cluster::tagged_wish(fleet)) spec.workers = wish->base;
  } catch (const DataError&) {
    // a wish that was changed by hand to nonsense says nothing; `up` writes it anew
  }
  return spec;
}

// Whether it is a base worker beyond the wanted ones, as after an `up` with fewer. An interrupted `remove` of one may
// have marked it.
bool is_surplus(const cluster::Fleet& fleet, const cluster::Node& node, int wanted) {
  if (cluster::leaves_on_purpose(node)) return cluster::counted_base(fleet, node.instance_id) >= wanted;
  return std::ranges::count(cluster::surplus_base_workers(fleet, wanted), &node) > 0;
}

void check_may_go(const RemoveCommand& options, const cluster::Fleet& fleet, const cluster::Node& node) {
  if (options.force) return;
  const cluster::Spec spec = spec_now(fleet);
  const bool restarts = node.base && (fleet.on_emr() || !is_surplus(fleet, node, spec.workers));
  const char* why = node.role == cluster::Role::head ? "the head, which the other nodes depend on"
                    : restarts                       ? "a base worker, which the next `up` would start again"
                                                     : nullptr;
  if (why) {
    throw UsageError(fmt::format("{} of cluster {} is {}", node.name, options.place.name, why),
                     "--force ends it anyway");
  }
  if (fleet.on_emr()) return;  // which has no least number
  const int rest = fleet.counted_workers() - node.weight, least = cluster::least_workers(spec);
  if (rest >= least) return;
  throw UsageError(fmt::format("without {} cluster {} has {}, and at least {} are required", node.name, fleet.name,
                               count_text(rest, "worker"), least),
                   "--force ends it anyway; dtrain cluster up with a smaller --min-workers requires fewer");
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

// Longest wait with --force for a worker to leave the job.
constexpr std::chrono::seconds kToLeaveByForce{60};

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
  const std::chrono::seconds whole(options.place.timeout_seconds);
  const std::chrono::seconds patience = options.force ? std::min(kToLeaveByForce, whole) : whole;
  if (job::drain_node(cloud.aws(), fleet, node, *job::make_remote_job(*head, {}), patience)) return;
  throw Error(fmt::format("{} has not left the job within {} s", node.name, patience.count()),
              "--force ends it anyway");
}

// A base worker goes by force alone, and its job is to lose it as gently as any other.
void leave_job_if_possible(const RemoveCommand& options, ClusterCloud& cloud, const cluster::Fleet& fleet,
                           const cluster::Node& node, Reporter& reporter) {
  try {
    leave_job(options, cloud, fleet, node, reporter);
  } catch (const Stopped&) {
    throw;
  } catch (const Error& problem) {
    reporter.warn(fmt::format("{} is ended without leaving its job: {}", node.name, problem.what()));
  }
}

void end(const RemoveCommand& options, ClusterCloud& cloud, const cluster::Fleet& fleet, const cluster::Node& node,
         Reporter& reporter) {
  if (fleet.emr) return cluster::shrink_emr(cloud.aws(), *fleet.emr, node.instance_id);
  const bool is_worker = node.role == cluster::Role::worker;
  if (is_worker) (options.force ? leave_job_if_possible : leave_job)(options, cloud, fleet, node, reporter);
  if (is_worker) cluster::count_out(cloud.aws(), fleet, node);
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
    check_may_go(options, fleet, *node);
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
  return change_cluster(options.place, "run the same command again to continue",
                        [&] { return remove(options, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_remove() {
  auto command = make_command<RemoveCommand>("cluster remove", "remove one node from a cluster", act);
  command->examples = {"dtrain cluster remove demo w0003", "dtrain cluster remove demo w0001 --force --yes"};
  command->see_also = {"cluster add", "cluster status", "cluster down"};
  return command;
}

}  // namespace dtrain::cli
