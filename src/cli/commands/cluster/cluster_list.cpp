#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/regions.hpp>
#include <dtrain/cluster/registered.hpp>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "cluster_cloud.hpp"

namespace dtrain::cli {
namespace {

struct ListCommand {
  config::ClusterPlace place;
  bool all_regions = false;
};

void bind(config::OptionSet& set, ListCommand& options) {
  set.group("Account");
  config::bind_account(set, options.place);
  set.group("Options");
  set.add("--all-regions", options.all_regions, "look in every region that is enabled for the account");
}

const char* state_of(const cluster::Fleet& fleet) {
  if (fleet.on_emr()) return "on EMR";
  if (fleet.nodes.empty()) return "no machines";
  const cluster::Node* head = fleet.head();
  if (!head) return "no head";
  if (std::ranges::all_of(fleet.nodes, [](const auto& one) { return one.state == "stopped"; })) return "stopped";
  if (cluster::is_stopped(fleet) && std::ranges::none_of(fleet.nodes, &cluster::Node::alive)) return "stopping";
  if (!head->alive()) return "head stopped";
  if (!std::ranges::all_of(fleet.nodes, &cluster::Node::alive)) return "partly stopped";
  const bool all_run = std::ranges::all_of(fleet.nodes, [](const auto& one) { return one.state == "running"; });
  return all_run ? "running" : "starting";
}

std::vector<std::string> types_in(const cluster::Fleet& fleet) {
  std::vector<std::string> types;
  for (const cluster::Node& node : fleet.nodes) {
    if (std::ranges::find(types, node.type) == types.end()) types.push_back(node.type);
  }
  return types;
}

// The age of a cluster is that of its oldest machine.
double age_in_hours(const cluster::Fleet& fleet) {
  double age = 0;
  for (const cluster::Node& node : fleet.nodes) age = std::max(age, cluster::hours_of(node));
  return age;
}

std::string age_text(double hours) {
  return hours < 2 * cluster::kHoursOfADay ? fmt::format("{:.1f} h", hours)
                                           : fmt::format("{:.1f} d", hours / cluster::kHoursOfADay);
}

// A cluster and where it is.
struct Found {
  std::string region;
  cluster::Fleet fleet;
  cluster::Cost cost;
  cluster::StoppedDisks disks;
};
struct Listing {
  std::vector<std::string> regions{};
  std::vector<Found> clusters{};                               // by region, then by name
  std::vector<std::pair<std::string, std::string>> unknown{};  // regions that did not answer, and why
  std::vector<cluster::RegisteredCluster> registered{};        // by this user, of hosts
  std::string no_account{};                                    // why no account was asked; empty: one was
};

Listing list_region(ClusterCloud& cloud) {
  Listing listing{.regions = {cloud.aws().region()}};
  for (cluster::Fleet& fleet : cluster::read_fleets(cloud.aws())) {
    const cluster::Cost cost = cluster::cost_of(fleet, cloud.prices());
    cluster::StoppedDisks disks = cluster::read_stopped_disks(cloud.aws(), fleet, cloud.prices());
    listing.clusters.push_back({cloud.aws().region(), std::move(fleet), cost, disks});
  }
  return listing;
}

void append(Listing& all, Listing one) {
  all.regions.insert(all.regions.end(), one.regions.begin(), one.regions.end());
  all.clusters.insert(all.clusters.end(), std::make_move_iterator(one.clusters.begin()),
                      std::make_move_iterator(one.clusters.end()));
}

// What the region refuses is reported beside what the others have.
void add_region(const ListCommand& options, const std::string& region, Listing& all, Reporter& reporter) {
  config::ClusterPlace place = options.place;
  place.region = region;
  try {
    ClusterCloud cloud(place, reporter, ClusterCloud::Scope::region);
    append(all, list_region(cloud));
  } catch (const RemoteError& error) {
    all.regions.push_back(region);
    all.unknown.emplace_back(region, error.what());
  }
}

Listing list_all_regions(const ListCommand& options, Reporter& reporter) {
  ClusterCloud first(options.place, reporter, ClusterCloud::Scope::region);
  Listing all;
  for (const std::string& region : cluster::region_names(first.aws())) add_region(options, region, all, reporter);
  return all;
}

Json cluster_json(const Found& found) {
  const cluster::Fleet& fleet = found.fleet;
  return Json::object({{"name", fleet.name},
                       {"region", found.region},
                       {"state", state_of(fleet)},
                       {"machines", fleet.nodes.size()},
                       {"types", json_texts(types_in(fleet))},
                       {"age_hours", age_in_hours(fleet)},
                       {"dollars_per_hour", hourly_json(found.cost)},
                       {"unpriced", unpriced_json(found.cost)},
                       {"stopped", stopped_json(found.disks)}});
}

std::string cost_in_list(const Found& found) {
  const bool none_runs = std::ranges::none_of(found.fleet.nodes, &cluster::Node::alive);
  if (found.disks.machines == 0 || !none_runs) return cost_text(found.cost);
  return found.disks.monthly ? fmt::format("disks, ${:.2f} a month", *found.disks.monthly) : "disks, an unknown price";
}

void answer_clusters(const std::vector<Found>& clusters, Reporter& reporter) {
  std::vector<std::vector<std::string>> rows{{"NAME", "REGION", "STATE", "MACHINES", "TYPE", "AGE", "COST AN HOUR"}};
  for (const Found& found : clusters) {
    const cluster::Fleet& fleet = found.fleet;
    rows.push_back({fleet.name, found.region, state_of(fleet), std::to_string(fleet.nodes.size()),
                    fmt::format("{}", fmt::join(types_in(fleet), ",")), age_text(age_in_hours(fleet)),
                    cost_in_list(found)});
  }
  answer_rows(rows, reporter);
}

Json registered_json(const cluster::RegisteredCluster& cluster) {
  Json hosts = Json::array();
  for (const cluster::RegisteredHost& host : cluster.hosts) hosts.push_back(host.name);
  const cluster::Cost cost = cluster::hourly_cost(cluster);
  return Json::object({{"name", cluster.name},
                       {"head", cluster.head().name},
                       {"hosts", hosts},
                       {"shared", cluster.shared},
                       {"dollars_per_hour", hourly_json(cost)},
                       {"unpriced", unpriced_json(cost)}});
}

// As they were seen last: their heads are not asked.
void answer_registered(const std::vector<cluster::RegisteredCluster>& clusters, Reporter& reporter) {
  if (clusters.empty()) return;
  std::vector<std::vector<std::string>> rows{{"NAME", "HOSTS", "HEAD", "SHARED FOLDER", "COST AN HOUR"}};
  for (const cluster::RegisteredCluster& one : clusters) {
    rows.push_back({one.name, std::to_string(one.hosts.size()), one.head().name, one.shared,
                    cost_text(cluster::hourly_cost(one))});
  }
  answer_rows(rows, reporter);
}

Json document(const ListCommand& options, const Listing& listing) {
  Json clusters = Json::array(), unknown = Json::array(), registered = Json::array();
  for (const cluster::RegisteredCluster& one : listing.registered) registered.push_back(registered_json(one));
  for (const Found& found : listing.clusters) clusters.push_back(cluster_json(found));
  for (const auto& [region, why] : listing.unknown) {
    unknown.push_back(Json::object({{"region", region}, {"why", why}}));
  }
  return Json::object(
      {{"schema", "dtrain.cluster-list/1"},
       {"region", options.all_regions || listing.regions.size() != 1 ? Json() : Json(listing.regions.front())},
       {"regions", json_texts(listing.regions)},
       {"unknown", unknown},
       {"clusters", clusters},
       {"registered", registered}});
}

void answer_lines(const ListCommand& options, const Listing& listing, Reporter& reporter) {
  answer_registered(listing.registered, reporter);
  if (!listing.no_account.empty()) return;
  if (!listing.clusters.empty()) {
    answer_clusters(listing.clusters, reporter);
  } else if (options.all_regions) {
    reporter.answer(fmt::format("there is no cluster in {} regions", listing.regions.size() - listing.unknown.size()));
  } else {
    reporter.answer(fmt::format("there is no cluster in {}", join(listing.regions, " or ")));
  }
}

// The named regions, or the usual one and those in which `up` of this user has made clusters.
Listing list_account(const ListCommand& options, Reporter& reporter) {
  if (options.all_regions) return list_all_regions(options, reporter);
  std::vector<std::string> regions = cluster::regions_in(options.place.region);
  const bool named = !regions.empty();
  config::ClusterPlace place = options.place;
  if (named) place.region = regions.front();
  ClusterCloud first(place, reporter, ClusterCloud::Scope::region);
  Listing all = list_region(first);
  for (const std::string& region : named ? regions : cluster::all_remembered_regions()) {
    if (region != first.aws().region()) add_region(options, region, all, reporter);
  }
  return all;
}

// `aws`: the hint of what failed.
std::string hint_without_account(const std::string& aws) {
  return fmt::format("no cluster of hosts is registered: `dtrain cluster register NAME --hosts FILE` registers one{}{}",
                     aws.empty() ? "" : "; for AWS: ", aws);
}

// A user without an account of AWS may have clusters of hosts.
Listing list_all(const ListCommand& options, const config::OptionSet& set, Reporter& reporter) {
  Listing listing;
  std::vector<cluster::RegisteredCluster> registered = cluster::all_registered();
  const bool asks_for_aws = options.all_regions || set.chosen("region") || set.chosen("profile");
  try {
    listing = list_account(options, reporter);
  } catch (const UsageError& error) {
    if (asks_for_aws) throw;
    if (registered.empty()) throw UsageError(error.what(), hint_without_account(error.hint()));
    listing.no_account = error.what();
    reporter.note(fmt::format("clusters in AWS are not listed: {}", error.what()));
  }
  listing.registered = std::move(registered);
  return listing;
}

ExitCode act(const ListCommand& options, const config::OptionSet& set, Reporter& reporter) {
  const Listing listing = list_all(options, set, reporter);
  if (reporter.json()) {
    reporter.answer_json(document(options, listing));
  } else {
    answer_lines(options, listing, reporter);
  }
  for (const auto& [region, why] : listing.unknown) {
    reporter.warn(fmt::format("region {} is unknown: {}", region, why));
  }
  return listing.unknown.empty() ? ExitCode::ok : ExitCode::partly_done;
}

}  // namespace

std::unique_ptr<Command> make_cluster_list() {
  auto command = make_command<ListCommand>(
      "cluster list", "list your registered clusters, and those of your AWS account, in one region or in all", act);
  command->examples = {"dtrain cluster list", "dtrain cluster list --region eu-west-1 --json",
                       "dtrain cluster list --all-regions"};
  command->see_also = {"cluster status", "cluster cost", "cluster down"};
  return command;
}

}  // namespace dtrain::cli
