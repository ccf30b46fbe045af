#include <fmt/format.h>

#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/emr.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "cluster_spot.hpp"

namespace dtrain::cli {
namespace {

struct UpCommand {
  config::ClusterPlace place;
  cluster::Spec spec;
  bool yes = false, no_wait = false, dry_run = false;
};

void bind(config::OptionSet& set, UpCommand& options) {
  config::bind_cluster(set, options.place);
  bind(set, options.spec);
  set.group("How");
  config::bind_yes(set, options.yes, "make it without asking");
  set.add("--no-wait", options.no_wait,
          "return when the machines are ordered; `cluster status` or the same `up` goes on later");
  set.add("--dry-run", options.dry_run, "only say what would be done, as `cluster plan` does");
}

Json document(const cluster::Wish& wish, const cluster::UpResult& result) {
  Json nodes = Json::array();
  for (const cluster::Node& node : result.fleet.nodes) nodes.push_back(node_json(node));
  return Json::object({{"schema", "dtrain.cluster-up/1"},
                       {"cluster", wish.name},
                       {"changed", result.changed},
                       {"wanted", wish.spec.workers},
                       {"workers", result.fleet.workers().size()},
                       {"nodes", nodes},
                       {"attempts", attempts_json(result.workers)}});
}

void answer(const cluster::Wish& wish, const cluster::UpResult& result, Reporter& reporter) {
  if (!result.changed) reporter.answer(fmt::format("cluster {} is up to date", wish.name));
  for (const cluster::Node& node : result.fleet.nodes) {
    reporter.answer(fmt::format("{:<8}{:<21}{:<10}{:<16}{:<16}{}", node.name, node.instance_id, node.state,
                                node.private_ip, node.public_ip, node.zone));
  }
}

ExitCode make(const UpCommand& options, const config::OptionSet& set, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  const cluster::Wish wish = wish_of(options.place.name, options.spec, set, fleet);
  cluster::check_spec(wish.spec);
  const cluster::Account account = cluster::read_account(cloud.aws(), wish.spec, wish.name);
  const cluster::Plan plan = cluster::plan_up(wish.spec, wish.options, account, fleet);
  if (options.dry_run) {
    answer_plan_with_spot(cloud.aws(), wish, account, plan, fleet, reporter);
    return ExitCode::ok;
  }
  for (const std::string& note : plan.notes) reporter.warn(note);
  if (!plan.actions.empty()) {
    require_consent(options.yes, fmt::format("cluster {}: make it, for ${:.2f} an hour?", wish.name, plan.cost.hourly),
                    reporter);
  }
  const cluster::UpResult result = (wish.spec.on == "emr" ? cluster::bring_up_emr : cluster::bring_up)(
      cloud.work(!options.no_wait), wish, account, std::move(fleet), plan);
  cluster::renew_ssh_entries(result.fleet, reporter);
  if (reporter.json()) {
    reporter.answer_json(document(wish, result));
  } else {
    answer(wish, result, reporter);
  }
  const ExitCode settled =
      options.no_wait || result.fleet.on_emr()
          ? ExitCode::ok
          : cluster::settle_nodes(result.fleet, std::chrono::seconds(options.place.timeout_seconds), reporter);
  if (result.workers.got >= result.workers.wanted) return settled;
  reporter.warn(fmt::format("only {} of {} workers were to be had; run the same command again later for the rest",
                            result.workers.got, result.workers.wanted));
  return ExitCode::partly_done;
}

ExitCode act(const UpCommand& options, const config::OptionSet& set, Reporter& reporter) {
  return change_cluster(options.place, [&] { return make(options, set, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_up() {
  auto command = make_command<UpCommand>("cluster up", "make a cluster, or complete the one that is there", act);
  command->examples = {"dtrain cluster up demo -w 2 --instance-type c5.2xlarge --key mine --ttl 12h",
                       "dtrain cluster up demo --workers 8 --min-workers 4 --instance-type g5.xlarge,g4dn.xlarge "
                       "--spot prefer --shared efs --yes"};
  command->see_also = {"cluster plan", "cluster status", "cluster add", "cluster down"};
  return command;
}

}  // namespace dtrain::cli
