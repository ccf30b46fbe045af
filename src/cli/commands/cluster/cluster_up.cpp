#include <fmt/format.h>

#include <algorithm>

#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/emr.hpp>
#include <dtrain/cluster/ssh_entries.hpp>
#include <dtrain/cluster/tagged_prices.hpp>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "cluster_cloud.hpp"
#include "cluster_spot.hpp"
#include "keep/cluster_budget.hpp"
#include "keep/cluster_regions.hpp"

namespace dtrain::cli {
namespace {

struct UpCommand {
  config::ClusterPlace place;
  cluster::Spec spec;
  bool yes = false, no_wait = false, dry_run = false;
  double budget = 0;  // US dollars; 0: no limit
};

void bind(config::OptionSet& set, UpCommand& options) {
  config::bind_cluster(set, options.place);
  bind(set, options.spec);
  bind_budget(
      set, options.budget,
      "what the machines may cost, in US dollars since the cluster was made, without disks and traffic; 0 for "
      "no limit (default the one that the cluster has, else none). `cluster watch --heal` keeps it: it warns at "
      "80 %, and at 100 % it stops the job with a checkpoint and ends the workers");
  set.group("Options");
  config::bind_yes(set, options.yes, "create the machines without asking for confirmation");
  set.add("--no-wait", options.no_wait,
          "return once the machines are requested; `cluster status` or the same `up` continues later");
  set.add("--dry-run", options.dry_run, "show what would be created, like `cluster plan`");
}

Json document(const cluster::ClusterRequest& request, const cluster::UpResult& result, const std::string& region) {
  Json nodes = Json::array();
  for (const cluster::Node& node : result.fleet.nodes) nodes.push_back(node_json(node));
  return Json::object({{"schema", "dtrain.cluster-up/1"},
                       {"cluster", request.name},
                       {"region", region},
                       {"changed", result.changed},
                       {"wanted", request.spec.workers},
                       {"workers", result.fleet.workers().size()},
                       {"nodes", nodes},
                       {"attempts", attempts_json(result.workers)}});
}

void answer(const cluster::ClusterRequest& request, const cluster::UpResult& result, Reporter& reporter) {
  const bool all_run = std::ranges::all_of(result.fleet.nodes, &cluster::Node::alive);
  const bool all_stay = result.workers.got >= result.workers.wanted;
  if (!result.changed && all_run && all_stay) reporter.answer(fmt::format("cluster {} is up to date", request.name));
  std::vector<std::vector<std::string>> rows;
  for (const cluster::Node& node : result.fleet.nodes) {
    rows.push_back({node.name, node.instance_id, node.state, node.private_ip, node.public_ip, node.zone});
  }
  for (const std::string& line : aligned(rows)) reporter.answer(line);
}

// Nodes that do not run, which only their owner starts again.
bool warn_of_stopped(const cluster::Fleet& fleet, Reporter& reporter) {
  const auto note = cluster::stopped_note(fleet);
  if (note) reporter.warn(*note);
  return note.has_value();
}

// A wish that was changed by hand to nonsense has no budget: `up` writes it anew.
BudgetView known_budget(ClusterCloud& cloud, const cluster::Fleet& fleet, Reporter& reporter) {
  try {
    return read_budget(cloud, fleet);
  } catch (const DataError& problem) {
    reporter.warn(fmt::format("{}: its budget is lost", problem.what()));
    return {};
  }
}

void check_budget(const UpCommand& options, const config::OptionSet& set, ClusterCloud& cloud,
                  const cluster::Fleet& fleet, cluster::ClusterRequest& request, Reporter& reporter) {
  BudgetView view = known_budget(cloud, fleet, reporter);
  if (set.chosen(kBudget)) {
    request.budget = options.budget;
    view.budget = options.budget > 0 ? std::optional(options.budget) : std::nullopt;
  }
  if (!view.budget) return;
  if (request.spec.on == cluster::Service::emr) refuse_budget_on_emr();
  require_budget(view, cluster::types_of(request.spec), cloud, fleet);
  view.hourly = cluster::cost_of(cluster::machines_of(request.spec), {}, cloud.prices());
  reporter.note(fmt::format("{}; dtrain cluster watch {} --heal keeps it", budget_line(view), request.name));
}

void ask(const UpCommand& options, const RegionOrder& order, Reporter& reporter) {
  for (const std::string& note : order.tried.front().plan.notes) reporter.warn(note);
  answer_regions(order, reporter);
  const bool makes = std::ranges::any_of(order.tried, [](const Candidate& one) { return !one.plan.actions.empty(); });
  if (!makes && order.to_clear.empty()) return;
  for (const Candidate& one : order.tried) one.cloud->warn_of_prices();
  require_consent(
      options.yes,
      fmt::format("cluster {}: create it, for {} an hour{}?", options.place.name, cost_text(highest_cost(order)),
                  order.tried.size() > 1 ? " at most, in the dearest of these regions" : ""),
      reporter);
}

ExitCode make(const UpCommand& options, const config::OptionSet& set, Reporter& reporter) {
  cluster::check_values(options.spec);
  const Asked asked{options.place, options.spec, set};
  RegionOrder order = order_regions(asked, reporter);
  if (options.dry_run) {
    answer_plan_with_spot(order, std::nullopt, reporter);
    return ExitCode::ok;
  }
  for (Candidate& one : order.tried) check_budget(options, set, *one.cloud, one.fleet, one.request, reporter);
  const std::string& public_key = order.tried.front().account.public_key;
  if (!public_key.empty()) cluster::warn_of_locked_key(options.place.name, public_key, reporter);
  ask(options, order, reporter);
  cluster::ClusterRequest request;  // the one that was made
  std::string region;
  const cluster::UpResult result = make_in_order(order, asked, reporter, [&](Candidate& one) {
    if (set.chosen(kBudget)) one.request.budget = options.budget;
    one.request.prices = cluster::prices_to_tag(one.fleet, cluster::types_of(one.request.spec), one.cloud->prices());
    request = one.request;
    region = one.region();
    return (request.spec.on == cluster::Service::emr ? cluster::bring_up_emr : cluster::bring_up)(
        one.cloud->context(!options.no_wait), request, one.account, one.fleet, one.plan);
  });
  cluster::renew_ssh_entries(result.fleet, reporter);
  if (reporter.json()) {
    reporter.answer_json(document(request, result, region));
  } else {
    answer(request, result, reporter);
  }
  if (warn_of_stopped(result.fleet, reporter)) return ExitCode::partly_done;
  const ExitCode settled =
      options.no_wait || result.fleet.on_emr()
          ? ExitCode::ok
          : cluster::settle_nodes(result.fleet, std::chrono::seconds(options.place.timeout_seconds), reporter);
  if (result.workers.got >= result.workers.wanted) return settled;
  reporter.warn(fmt::format("only {} of {} workers could be started; run the same command later for the rest",
                            result.workers.got, result.workers.wanted));
  return ExitCode::partly_done;
}

ExitCode act(const UpCommand& options, const config::OptionSet& set, Reporter& reporter) {
  return change_cluster(options.place,
                        fmt::format("what was made so far remains: run the same command again to continue, or dtrain "
                                    "cluster down {0} to remove it; dtrain cluster status {0} lists it",
                                    options.place.name),
                        [&] { return make(options, set, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_up() {
  auto command = make_command<UpCommand>("cluster up", "create a cluster, or complete an existing one", act);
  command->first_options = {"workers", "instance-type", "key", "spot", "shared", "ttl", "dry-run", "yes"};
  command->examples = {"dtrain cluster up demo -w 2 --instance-type c5.2xlarge --key mine --ttl 12h",
                       "dtrain cluster up demo --workers 8 --min-workers 4 --instance-type g5.xlarge,g6.xlarge "
                       "--spot prefer --shared efs --yes"};
  command->see_also = {"cluster plan", "cluster status", "cluster add", "cluster down"};
  return command;
}

}  // namespace dtrain::cli
