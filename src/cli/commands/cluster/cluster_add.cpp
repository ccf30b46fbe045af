#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/emr.hpp>
#include <dtrain/cluster/healer.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "hosts/host_words.hpp"
#include "job/tag_sync/sync.hpp"
#include "keep/cluster_budget.hpp"

namespace dtrain::cli {
namespace {

constexpr int kMostAtOnce = 1'000;

struct AddCommand {
  config::ClusterPlace place;
  std::string words;
  std::optional<int> least;
  std::string reservation;
  HostPrices prices;
  bool yes = false, no_wait = false;
};

void bind(config::OptionSet& set, AddCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Workers");
  // Hosts of a registered cluster do not come further: see hosts/commands.hpp.
  config::Option& count = set.add("COUNT|HOST", options.words, "COUNT|HOST",
                                  fmt::format("number of workers to add, from 1 to {}; for a cluster of registered "
                                              "hosts, the hosts to add, as in a host file",
                                              kMostAtOnce));
  count.required = count.many = true;
  set.add("--min-workers", options.least, "M", "add no worker unless at least M can be started (default all of them)",
          config::at_least(1));
  set.add("--capacity-reservation", options.reservation, "ID",
          "capacity reservation in which these workers are started, cr-... (default that of the cluster)")
      .flag_only = true;
  bind_prices(set, options.prices, "price of an hour in US dollars of a registered host (default unknown)");
  config::bind_yes(set, options.yes, "start the machines without asking for confirmation");
  set.add("--no-wait", options.no_wait, "return once the machines are requested, without waiting until they are ready");
}

int count_in(const std::string& words) {
  const auto count = parse_integer(trim(words));
  if (count && *count >= 1 && *count <= kMostAtOnce) return static_cast<int>(*count);
  throw UsageError(fmt::format("COUNT: must be a whole number from 1 to {}, not '{}'", kMostAtOnce, words),
                   !count       ? "hosts are added to a cluster that `dtrain cluster register` made"
                   : *count < 1 ? "`dtrain cluster remove` takes workers out"
                                : "give it in several steps");
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
ExitCode add_to_emr(const AddCommand& options, int count, std::string& hint, ClusterCloud& cloud,
                    const cluster::Fleet& fleet, Reporter& reporter) {
  if (!fleet.emr) {
    throw UsageError(fmt::format("the EMR cluster of {} has ended", fleet.name),
                     fmt::format("dtrain cluster up {} creates a new one", fleet.name));
  }
  require_consent(options.yes, fmt::format("cluster {}: start {} more?", fleet.name, count), reporter);
  // The same command would add as many again.
  hint = fmt::format(
      "dtrain cluster status {} shows whether the group has grown; run the same command again only if it has not",
      fleet.name);
  const int wanted = cluster::grow_emr(cloud.aws(), *fleet.emr, count);
  if (reporter.json()) {
    reporter.answer_json(Json::object(
        {{"schema", "dtrain.cluster-add/1"}, {"cluster", fleet.name}, {"emr", fleet.emr->id}, {"workers", wanted}}));
  } else {
    reporter.answer(fmt::format("{} is to have {}", fleet.emr->id, count_text(wanted, "worker")));
  }
  return ExitCode::ok;
}

// `hint`: how it is gone on with where a signal interrupts it.
ExitCode add(const AddCommand& options, const config::OptionSet& set, std::string& hint, Reporter& reporter) {
  if (set.chosen("price")) throw UsageError("--price: AWS says what its machines cost", "leave it out");
  const int count = count_in(options.words);
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  require_there(fleet, cloud.aws());
  if (fleet.on_emr()) return add_to_emr(options, count, hint, cloud, fleet, reporter);
  cluster::require_complete(fleet);
  cluster::ClusterRequest request = cluster_request(options.place.name, {}, set, fleet);
  if (!options.reservation.empty()) request.spec.capacity_reservation = options.reservation;
  cluster::check_spec(request.spec);
  const cluster::Account account = cluster::read_account(cloud.aws(), request.spec, request.name);
  const std::string& type = request.spec.instance_types.front();
  const int machines = cluster::machines_for(count, weight_of(request.spec, type));
  const std::vector<std::string> types(static_cast<std::size_t>(machines), type);
  if (const auto note = cluster::reservation_note(account, machines)) reporter.note(*note);
  require_budget(read_budget(cloud, fleet), types, cloud, fleet);
  cloud.warn_of_prices();
  require_consent(options.yes,
                  fmt::format("cluster {}: start {} more, for {} an hour?", fleet.name, machines,
                              cost_text(cluster::cost_of(types, cloud.prices()))),
                  reporter);
  const cluster::AddResult result = cluster::add_workers(cloud.context(!options.no_wait), request, account, fleet,
                                                         count, options.least.value_or(count));
  // The same command would add as many again.
  hint = fmt::format(
      "the workers were added: dtrain cluster status {0} shows when they are registered, and dtrain "
      "cluster watch {0} --once lets them join the job",
      fleet.name);
  cluster::change_wish(cloud.aws(), fleet, std::nullopt,
                       [&](cluster::Wish& wish) { wish.elastic += result.workers.got; });
  cluster::renew_ssh_entries(cloud.aws(), fleet.name, reporter);
  if (reporter.json()) reporter.answer_json(document(fleet, result));
  for (const cluster::Node& node : result.added) {
    if (!reporter.json()) reporter.answer(fmt::format("{}  {}  {}", node.name, node.instance_id, node.private_ip));
  }
  const ExitCode settled = options.no_wait ? ExitCode::ok : let_join(options, cloud, reporter);
  return result.workers.got < result.workers.wanted ? ExitCode::partly_done : settled;
}

ExitCode act(const AddCommand& options, const config::OptionSet& set, Reporter& reporter) {
  std::string hint = fmt::format(
      "run the same command again to continue, with the machines that were started; dtrain cluster status {0} lists "
      "them, and dtrain cluster remove {0} NODE ends one",
      options.place.name);
  return change_cluster(options.place, hint, [&] { return add(options, set, hint, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_add() {
  auto command = make_command<AddCommand>("cluster add", "add workers to a cluster", act);
  command->examples = {"dtrain cluster add demo 2", "dtrain cluster add demo 8 --min-workers 4 --yes",
                       "dtrain cluster add lab h4 --price 0.35"};
  command->see_also = {"cluster remove", "cluster status"};
  return command;
}

}  // namespace dtrain::cli
