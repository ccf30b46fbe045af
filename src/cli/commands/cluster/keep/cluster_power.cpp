#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/healer.hpp>
#include <dtrain/cluster/power.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

#include "cli/commands/cluster/cluster_cloud.hpp"
#include "cli/commands/cluster/cluster_look.hpp"
#include "cli/table.hpp"
#include "cluster_budget.hpp"
#include "commands.hpp"
#include "stop_job.hpp"

namespace dtrain::cli {
namespace {

struct PowerCommand {
  config::ClusterPlace place;
  bool yes = false, no_wait = false, no_head = false, force = false;
};
struct StopMachines : PowerCommand {};
struct StartMachines : PowerCommand {};

void bind(config::OptionSet& set, StopMachines& options) {
  config::bind_cluster(set, options.place);
  set.group("Options");
  config::bind_yes(set, options.yes, "stop the machines without asking for confirmation");
  set.add("--force", options.force, "stop the machines even if the job that runs there cannot be stopped first")
      .flag_only = true;
  set.add("--no-wait", options.no_wait, "return once the machines are asked to stop");
  bind_no_head(set, options.no_head);
}

void bind(config::OptionSet& set, StartMachines& options) {
  config::bind_cluster(set, options.place);
  set.group("Options");
  config::bind_yes(set, options.yes, "start the machines without asking for confirmation");
  set.add("--no-wait", options.no_wait,
          "return once the machines are asked to start, without waiting for their agents");
}

std::vector<cluster::Node> nodes_that(const cluster::Fleet& fleet, bool (*fits)(const cluster::Node&)) {
  std::vector<cluster::Node> found;
  std::ranges::copy_if(fleet.nodes, std::back_inserter(found), fits);
  return found;
}

bool runs_and_stops(const cluster::Node& node) { return node.alive() && cluster::why_not_stopped(node).empty(); }
bool runs_on(const cluster::Node& node) { return node.alive() && !cluster::why_not_stopped(node).empty(); }
bool is_off(const cluster::Node& node) { return !node.alive(); }

std::string names_of(const std::vector<cluster::Node>& nodes) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> names;
  for (const cluster::Node& node : nodes) names.push_back(fmt::format("{} ({})", node.name, node.instance_id));
  return join_first(names, kMost, ", ");
}

std::string price_of(const std::vector<cluster::Node>& nodes, ClusterCloud& cloud) {
  std::vector<std::string> types;
  for (const cluster::Node& node : nodes) types.push_back(node.type);
  return cost_text(cluster::cost_of(types, cloud.prices()));
}

Json document(const char* schema, const cluster::PowerResult& result, const cluster::StoppedDisks& disks) {
  Json changed = Json::array(), unmoved = Json::array(), nodes = Json::array();
  for (const cluster::Node& node : result.changed) changed.push_back(node.name);
  for (const cluster::Node& node : result.fleet.nodes) nodes.push_back(node_json(node));
  for (const cluster::Unmoved& one : result.unmoved) {
    unmoved.push_back(Json::object({{"node", one.node.name},
                                    {"instance_id", one.node.instance_id},
                                    {"state", one.node.state},
                                    {"why", one.why},
                                    {"next", one.hint}}));
  }
  return Json::object({{"schema", schema},
                       {"cluster", result.fleet.name},
                       {"changed", changed},
                       {"unmoved", unmoved},
                       {"stopped", stopped_json(disks)},
                       {"nodes", nodes}});
}

void warn_of_unmoved(const cluster::PowerResult& result, ClusterCloud& cloud, Reporter& reporter) {
  for (const cluster::Unmoved& one : result.unmoved) {
    const std::string cost =
        one.node.alive() ? fmt::format(" and goes on, for {} an hour", price_of({one.node}, cloud)) : "";
    reporter.warn(
        fmt::format("{} ({}) is {}{}: {}", one.node.name, one.node.instance_id, one.node.state, cost, one.why));
    reporter.warn("  next: " + one.hint);
  }
}

void require_ec2(const cluster::Fleet& fleet, const char* what) {
  if (!fleet.on_emr()) return;
  throw UsageError(fmt::format("Amazon EMR does not {} clusters", what),
                   fmt::format("dtrain cluster down {} ends it", fleet.name));
}

// What is left half-way is no loss: the same command goes on from there.
ExitCode change_power(const config::ClusterPlace& place, const char* what, const std::function<ExitCode()>& change) {
  try {
    return change();
  } catch (const Stopped&) {
    throw Interrupted(
        stop_signal(), fmt::format("cluster {}: interrupted while its machines {}", place.name, what),
        fmt::format("run the same command again to continue; dtrain cluster status {} lists them", place.name));
  }
}

// Stop.

// A cluster whose job goes on is not to stop: its queue and its reconciler go on too.
void release(const StopMachines& options, cluster::Fleet& fleet, ClusterCloud& cloud) {
  cluster::note_stopped(cloud.aws(), fleet, false);
  if (options.no_head) return;
  std::ignore = attempt([&] { cluster::ClusterHead(fleet, std::chrono::seconds(0)).announce(fleet); });
}

// The queue would start its next job as soon as this one has stopped, so the mark that holds it comes first.
void stop_job_first(const StopMachines& options, cluster::Fleet& fleet, ClusterCloud& cloud, Reporter& reporter) {
  const cluster::Node* head = fleet.head();
  if (options.no_head || !head || head->state != "running") return;
  const bool was_stopped = cluster::is_stopped(fleet);
  cluster::note_stopped(cloud.aws(), fleet, true);
  const auto failure = attempt([&] { reporter.note(stop_job_on(fleet, "the cluster is to stop")); });
  cloud.begin_again();  // that may have taken minutes
  if (!failure) return;
  const std::string why =
      fmt::format("the job of cluster {} could not be stopped first: {}", fleet.name, failure->what());
  if (options.force) return reporter.warn(why);
  if (!was_stopped) release(options, fleet, cloud);
  throw Error(why, "--force stops the machines anyway; what the job has not saved is then lost");
}

std::string question_of_stop(const cluster::Fleet& fleet, const std::vector<cluster::Node>& stops,
                             ClusterCloud& cloud) {
  std::string text =
      fmt::format("cluster {}: stop {}: {}", fleet.name, count_text(stops.size(), "machine"), names_of(stops));
  if (const auto stay = nodes_that(fleet, runs_on); !stay.empty()) {
    text += fmt::format("; {} cannot be stopped and cost {} an hour", names_of(stay), price_of(stay, cloud));
  }
  if (const auto types = cluster::types_with_local_disks(cloud.aws(), fleet); !types.empty() && !stops.empty()) {
    text += fmt::format("; what is on the local disks of {} is lost", join(types, ", "));
  }
  return text + "?";
}

// What the machines cost until now: EC2 knows of each only its last start.
void note_spending(const cluster::Fleet& fleet, ClusterCloud& cloud, Reporter& reporter) {
  try {
    cluster::write_spending(cloud.aws(), fleet, read_budget(cloud, fleet).spending);
  } catch (const DataError& error) {
    reporter.warn(error.what());
  }
}

void answer_stop(const cluster::PowerResult& result, const cluster::StoppedDisks& disks, Reporter& reporter) {
  const bool some_run = std::ranges::any_of(result.fleet.nodes, &cluster::Node::alive);
  const bool some_stop =
      std::ranges::any_of(result.fleet.nodes, [](const auto& one) { return one.state == "stopping"; });
  const char* state = some_run ? "partly stopped" : some_stop ? "stopping" : "stopped";
  reporter.answer(
      fmt::format("cluster {} is {}{}", result.fleet.name, state, result.changed.empty() ? " already" : ""));
  if (!disks.text().empty()) reporter.answer(disks.text());
}

// Whether none of these machines stops.
bool all_go_on(const std::vector<cluster::Node>& nodes, const cluster::Fleet& fleet, ClusterCloud& cloud) {
  const cluster::Fleet now = cluster::read_fleet(cloud.aws(), fleet.name);
  return std::ranges::all_of(nodes, [&](const cluster::Node& node) {
    const cluster::Node* found = now.find(node.instance_id);
    return found && found->alive();
  });
}

// A refused call stops nothing, and a cluster that goes on is not to be marked as stopped.
cluster::PowerResult stop_or_release(const StopMachines& options, cluster::Fleet& fleet,
                                     const std::vector<cluster::Node>& stops, bool was_stopped, ClusterCloud& cloud) {
  cluster::note_stopped(cloud.aws(), fleet, true);
  try {
    return cluster::stop_machines(cloud.context(!options.no_wait), fleet);
  } catch (const net::AwsError&) {
    std::ignore = attempt([&] {
      if (!was_stopped && all_go_on(stops, fleet, cloud)) release(options, fleet, cloud);
    });
    throw;
  }
}

ExitCode stop(const StopMachines& options, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  require_there(fleet, cloud.aws());
  require_ec2(fleet, "stop");
  const bool was_stopped = cluster::is_stopped(fleet);
  const std::vector<cluster::Node> stops = nodes_that(fleet, runs_and_stops);
  if (!stops.empty()) {
    if (!options.yes) require_consent(false, question_of_stop(fleet, stops, cloud), reporter);
    stop_job_first(options, fleet, cloud, reporter);
  }
  const cluster::PowerResult result = stop_or_release(options, fleet, stops, was_stopped, cloud);
  if (!result.changed.empty()) note_spending(result.fleet, cloud, reporter);
  cluster::renew_ssh_entries(result.fleet, reporter);
  const cluster::StoppedDisks disks = cluster::read_stopped_disks(cloud.aws(), result.fleet, cloud.prices());
  if (reporter.json()) {
    reporter.answer_json(document("dtrain.cluster-stop/1", result, disks));
  } else {
    answer_stop(result, disks, reporter);
  }
  warn_of_unmoved(result, cloud, reporter);
  return result.unmoved.empty() ? ExitCode::ok : ExitCode::partly_done;
}

ExitCode act_stop(const StopMachines& options, const config::OptionSet&, Reporter& reporter) {
  return change_power(options.place, "stop", [&] { return stop(options, reporter); });
}

// Start.

void require_startable(const cluster::Fleet& fleet) {
  if (fleet.head()) return;
  throw UsageError(fmt::format("cluster {} has no head", fleet.name),
                   fmt::format("dtrain cluster up {} completes it", fleet.name));
}

ExitCode start(const StartMachines& options, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  require_there(fleet, cloud.aws());
  require_ec2(fleet, "start");
  require_startable(fleet);
  const std::vector<cluster::Node> off = nodes_that(fleet, is_off);
  if (!off.empty()) {
    std::vector<std::string> types;
    for (const cluster::Node& node : off) types.push_back(node.type);
    require_budget(read_budget(cloud, fleet), types, cloud, fleet);
    cloud.warn_of_prices();
    require_consent(options.yes,
                    fmt::format("cluster {}: start {}, for {} an hour: {}?", fleet.name,
                                count_text(off.size(), "machine"), price_of(off, cloud), names_of(off)),
                    reporter);
  }
  const cluster::PowerResult result = cluster::start_machines(cloud.context(!options.no_wait), fleet);
  cluster::renew_ssh_entries(result.fleet, reporter);
  if (reporter.json()) {
    const cluster::StoppedDisks disks = cluster::read_stopped_disks(cloud.aws(), result.fleet, cloud.prices());
    reporter.answer_json(document("dtrain.cluster-start/1", result, disks));
  } else if (result.changed.empty() && result.unmoved.empty()) {
    reporter.answer(fmt::format("cluster {} runs already", fleet.name));
  } else {
    std::vector<std::vector<std::string>> rows;
    for (const cluster::Node& node : result.changed) {
      rows.push_back({node.name, node.instance_id, node.state, node.private_ip, node.public_ip});
    }
    for (const std::string& line : aligned(rows)) reporter.answer(line);
  }
  warn_of_unmoved(result, cloud, reporter);
  if (options.no_wait) return result.unmoved.empty() ? ExitCode::ok : ExitCode::partly_done;
  cluster::Fleet running = result.fleet;
  std::erase_if(running.nodes, is_off);  // the head knows nothing of them
  const ExitCode settled =
      cluster::settle_nodes(running, std::chrono::seconds(options.place.timeout_seconds), reporter);
  return result.unmoved.empty() ? settled : ExitCode::partly_done;
}

ExitCode act_start(const StartMachines& options, const config::OptionSet&, Reporter& reporter) {
  return change_power(options.place, "start", [&] { return start(options, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_stop() {
  auto command = make_command<StopMachines>(
      "cluster stop", "stop the job and the machines of a cluster, and keep their disks", act_stop);
  command->examples = {"dtrain cluster stop demo", "dtrain cluster stop demo --yes --no-wait"};
  command->see_also = {"cluster start", "cluster status", "cluster down"};
  return command;
}

std::unique_ptr<Command> make_cluster_start() {
  auto command =
      make_command<StartMachines>("cluster start", "start the machines of a cluster that is stopped", act_start);
  command->examples = {"dtrain cluster start demo", "dtrain cluster start demo --yes"};
  command->see_also = {"cluster stop", "cluster status", "cluster up"};
  return command;
}

}  // namespace dtrain::cli
