#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/emr.hpp>
#include <dtrain/cluster/healer.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "job/coordinator/cluster_tag_sync.hpp"
#include "keep/cluster_budget.hpp"

namespace dtrain::cli {
namespace {

struct AddCommand {
  config::ClusterPlace place;
  int count = 1;
  std::optional<int> least;
  std::string reservation;
  bool yes = false, no_wait = false;
};

void bind(config::OptionSet& set, AddCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Workers");
  set.add("COUNT", options.count, "COUNT", "number of workers to add", config::between(1, 1'000)).required = true;
  set.add("--min-workers", options.least, "M", "add no worker unless at least M can be started (default all of them)",
          config::at_least(1));
  set.add("--capacity-reservation", options.reservation, "ID",
          "capacity reservation in which these workers are started, cr-... (default that of the cluster)")
      .flag_only = true;
  config::bind_yes(set, options.yes, "start the machines without asking for confirmation");
  set.add("--no-wait", options.no_wait, "return once the machines are requested, without waiting until they are ready");
}

Json document(const cluster::Fleet& fleet, const cluster::AddResult& result) {
  Json nodes = Json::array();
  for (const cluster::Node& node : result.added) nodes.push_back(node_json(node));
  return Json::object({{"schema", "dtrain.cluster-add/1"},
                       {"cluster", fleet.name},
                       {"wanted", result.workers.wanted},
                       {"got", result.workers.got},
                       {"nodes", nodes},
                       {"attempts", attempts_json(result.workers)}});
}

// Into the job that runs on the cluster, where there is one.
ExitCode let_join(const AddCommand& options, ClusterCloud& cloud, Reporter& reporter) {
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  const std::chrono::seconds patience(options.place.timeout_seconds);
  const ExitCode settled = cluster::settle_nodes(fleet, patience, reporter);
  cluster::ClusterHead head(fleet, patience);
  const auto note = [&reporter](const std::string& line) { reporter.note(line); };
  job::sync_tags(cloud.aws(), fleet.name, *job::make_remote_job(head, {}), note);
  return settled;
}

// EMR starts them in its own time; programs learn of them by `cluster env --emr`.
ExitCode add_to_emr(const AddCommand& options, ClusterCloud& cloud, const cluster::Fleet& fleet, Reporter& reporter) {
  if (!fleet.emr) {
    throw UsageError(fmt::format("the EMR cluster of {} has ended", fleet.name),
                     fmt::format("dtrain cluster up {} creates a new one", fleet.name));
  }
  require_consent(options.yes, fmt::format("cluster {}: start {} more?", fleet.name, options.count), reporter);
  const int wanted = cluster::grow_emr(cloud.aws(), *fleet.emr, options.count);
  if (reporter.json()) {
    reporter.answer_json(Json::object(
        {{"schema", "dtrain.cluster-add/1"}, {"cluster", fleet.name}, {"emr", fleet.emr->id}, {"workers", wanted}}));
  } else {
    reporter.answer(fmt::format("{} is to have {} workers", fleet.emr->id, wanted));
  }
  return ExitCode::ok;
}

ExitCode add(const AddCommand& options, const config::OptionSet& set, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  require_there(fleet, cloud.aws());
  if (fleet.on_emr()) return add_to_emr(options, cloud, fleet, reporter);
  cluster::require_complete(fleet);
  cluster::ClusterRequest request = cluster_request(options.place.name, {}, set, fleet);
  if (!options.reservation.empty()) request.spec.capacity_reservation = options.reservation;
  cluster::check_spec(request.spec);
  const cluster::Account account = cluster::read_account(cloud.aws(), request.spec, request.name);
  const std::vector<std::string> types(static_cast<std::size_t>(options.count), request.spec.instance_types.front());
  if (const auto note = cluster::reservation_note(account, options.count)) reporter.note(*note);
  require_budget(read_budget(cloud, fleet), types, cloud, fleet);
  require_consent(options.yes,
                  fmt::format("cluster {}: start {} more, for {} an hour?", fleet.name, options.count,
                              cost_text(cluster::cost_of(types, cloud.prices()))),
                  reporter);
  const cluster::AddResult result = cluster::add_workers(cloud.context(!options.no_wait), request, account, fleet,
                                                         options.count, options.least.value_or(options.count));
  if (auto wish = cluster::tagged_wish(fleet)) {
    wish->elastic += result.workers.got;
    cluster::write_wish(cloud.aws(), fleet, *wish);
  }
  cluster::renew_ssh_entries(cloud.aws(), fleet.name, reporter);
  if (reporter.json()) reporter.answer_json(document(fleet, result));
  for (const cluster::Node& node : result.added) {
    if (!reporter.json()) reporter.answer(fmt::format("{}  {}  {}", node.name, node.instance_id, node.private_ip));
  }
  const ExitCode settled = options.no_wait ? ExitCode::ok : let_join(options, cloud, reporter);
  return result.workers.got < result.workers.wanted ? ExitCode::partly_done : settled;
}

ExitCode act(const AddCommand& options, const config::OptionSet& set, Reporter& reporter) {
  return change_cluster(options.place, [&] { return add(options, set, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_add() {
  auto command = make_command<AddCommand>("cluster add", "add workers to a cluster", act);
  command->examples = {"dtrain cluster add demo 2", "dtrain cluster add demo 8 --min-workers 4 --yes"};
  command->see_also = {"cluster remove", "cluster status"};
  return command;
}

}  // namespace dtrain::cli
