#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/wish.hpp>

#include "ec2_fields.hpp"
#include "launch.hpp"
#include "parallel.hpp"
#include "refill.hpp"
#include "resources.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::size_t kNonceBytes = 8;
// A worker that has no name after so many hours was left by an `add` that was interrupted.
constexpr double kUntilNamedHours = 2.0 / 60;
constexpr int kMostRounds = 8;
// From this round on, a conflict of names is resolved by the `add` that sees it: the other `add` may have ended.
constexpr int kAloneFrom = 3;

using Ids = std::set<std::string>;

void name_workers(const AwsContext& context, const std::string& cluster,
                  const std::map<std::string, std::string>& names) {
  std::vector<std::function<void()>> calls;
  for (const auto& [id, name] : names) {
    calls.push_back(
        [&context, &cluster, id = id, name = name] { set_tags(context.aws, {id}, name_tags(cluster, name)); });
  }
  do_all(calls);
}

// Two `add`s that run at once may choose the same names. After each writes its own, it looks again, and where two nodes
// have the same name, the one that comes later by names_for() takes another.
Fleet settle_names(const AwsContext& context, const Fleet& known, const Ids& ours) {
  Fleet fleet = read_fleet_with(context.aws, known);
  GrowingPause pause;
  for (int round = 0; round < kMostRounds; ++round) {
    const auto names = names_for(fleet, ours, round >= kAloneFrom);
    if (names.empty()) break;
    name_workers(context, fleet.name, names);
    pause.wait();
    fleet = with_names(read_fleet_with(context.aws, known), names);
  }
  return fleet;
}

// The workers that an interrupted `add` left without names, `most` at most.
std::vector<std::string> orphans(const Fleet& fleet, int most) {
  std::vector<std::string> found;
  for (const Node* node : fleet.workers()) {
    const bool is_left = !node->named() && !node->base && !node->launch.empty() && hours_of(*node) > kUntilNamedHours;
    if (is_left && std::ssize(found) < most) found.push_back(node->instance_id);
  }
  return found;
}

// The workers of an order, as far as they are known before AWS shows them.
void remember(Fleet& fleet, const std::vector<std::string>& ids, const Tags& tags, const Launched& launched) {
  for (const std::string& id : ids) {
    if (fleet.find(id)) continue;
    const Pool pool = launched.attempts.empty() ? Pool{} : launched.attempts.back().pool;
    fleet.nodes.push_back({.name = id,
                           .base = tags.contains(tag::kBase),
                           .instance_id = id,
                           .state = "pending",
                           .zone = pool.zone,
                           .type = pool.type,
                           .launch = tags.at(tag::kLaunch),
                           .weight = pool.weight});
  }
}

// That of the cluster, or a version of it for the capacity reservation of this `add`.
LaunchTemplate template_for(net::AwsCalls& aws, const ClusterRequest& request, const Fleet& fleet) {
  const auto usual = fleet.options.find("capacity-reservation");
  const std::string& wanted = request.spec.capacity_reservation;
  if (wanted.empty() || (usual != fleet.options.end() && usual->second == wanted)) return *fleet.launch_template;
  return with_reservation(aws, *fleet.launch_template, wanted);
}

}  // namespace

void require_complete(const Fleet& fleet) {
  const Node* head = fleet.head();
  if (head && !head->alive()) {
    throw UsageError(fmt::format("the head of cluster {} is {}", fleet.name, head->state),
                     fmt::format("dtrain cluster start {} starts it; then run the same command again", fleet.name));
  }
  std::vector<std::string> missing;
  if (!head) missing.emplace_back("a head");
  if (!fleet.group) missing.emplace_back("a security group");
  if (!fleet.launch_template) missing.emplace_back("a launch template");
  if (missing.empty()) return;
  std::vector<std::string> there;
  for (const Node& node : fleet.nodes) there.push_back(node.instance_id);
  throw UsageError(
      fmt::format("cluster {} is not complete: it lacks {}{}", fleet.name, join(missing, " and "),
                  there.empty() ? "" : fmt::format("; {} carries its tag {}", join(there, ", "), tag::kCluster)),
      fmt::format("dtrain cluster up {} first", fleet.name));
}

AddResult add_workers(const AwsContext& context, const ClusterRequest& request, const Account& account,
                      const Fleet& fleet, int more, int least, NodeLifecycle lifecycle) {
  require_complete(fleet);
  const bool is_elastic = lifecycle == NodeLifecycle::elastic;
  std::vector<std::string> ids = is_elastic ? orphans(fleet, more) : std::vector<std::string>();
  for (const std::string& id : ids) context.say(fmt::format("{} was started by an interrupted `add`", id));
  AddResult result;
  Fleet known = fleet;
  int launches = 0;
  int there = 0;
  for (const std::string& id : ids) there += fleet.find(id)->weight;
  if (const int rest = more - there; rest > 0) {
    std::vector<std::string> names = next_workers(fleet, rest);
    const LaunchOrder order{fleet.group->id, launch_number(fleet, names), std::move(names),
                            to_hex(unpredictable_bytes(kNonceBytes))};
    Tags tags{{tag::kLaunch, order.launch_tag()}};
    tags.insert(is_elastic ? Tags::value_type{tag::kStatus, "ADD_QUEUED"} : Tags::value_type{tag::kBase, "yes"});
    const int lacking = std::max(least - there, 1);
    const auto fresh =
        launch_workers(context, order, template_for(context.aws, request, fleet),
                       worker_pools(request.spec, account, fleet.head()->zone), tags, lacking, result.workers);
    remember(known, fresh, tags, result.workers);
    ids.insert(ids.end(), fresh.begin(), fresh.end());
    launches = order.number + 1;
  }
  if (ids.empty()) {
    throw NoCapacity(fmt::format("cluster {}: none of {} further workers could be started", fleet.name, more),
                     "try later, or request fewer", result.workers);
  }
  const Ids ours(ids.begin(), ids.end());
  const Fleet now = settle_names(context, known, ours);
  Tags noted{{tag::kLastNode, std::to_string(last_node(now))}};
  if (launches > 0) noted[tag::kLaunches] = std::to_string(launches);
  set_tags(context.aws, {fleet.group->id}, noted);
  for (const Node& node : now.nodes) {
    if (ours.contains(node.instance_id)) result.added.push_back(node);
  }
  result.workers.wanted = more;
  result.workers.got = 0;
  for (const Node& node : result.added) result.workers.got += node.weight;
  return result;
}

// The names of lost base workers are free, and are given at once; added ones settle theirs with other commands.
AddResult refill_workers(const AwsContext& context, const Fleet& fleet, const std::vector<std::string>& names,
                         const std::vector<Pool>& pools, NodeLifecycle lifecycle) {
  require_complete(fleet);
  const LaunchOrder order{fleet.group->id, launch_number(fleet, names), names,
                          to_hex(unpredictable_bytes(kNonceBytes))};
  Tags tags{{tag::kLaunch, order.launch_tag()}, {tag::kHealed, "yes"}};
  tags.insert(lifecycle == NodeLifecycle::elastic ? Tags::value_type{tag::kStatus, "ADD_QUEUED"}
                                                  : Tags::value_type{tag::kBase, "yes"});
  AddResult result;
  const auto ids = launch_workers(context, order, *fleet.launch_template, pools, tags, 1, result.workers);
  if (ids.empty()) return result;
  std::map<std::string, std::string> named;
  for (std::size_t at = 0; at < ids.size(); ++at) named[ids[at]] = names[at];
  name_workers(context, fleet.name, named);
  Fleet known = fleet;
  remember(known, ids, tags, result.workers);
  known = with_names(std::move(known), named);
  const Fleet now = settle_names(context, known, Ids(ids.begin(), ids.end()));
  set_tags(context.aws, {fleet.group->id},
           {{tag::kLastNode, std::to_string(last_node(now))}, {tag::kLaunches, std::to_string(order.number + 1)}});
  for (const Node& node : now.nodes) {
    if (named.contains(node.instance_id)) result.added.push_back(node);
  }
  return result;
}

}  // namespace dtrain::cluster
