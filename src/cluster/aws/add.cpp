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
#include "plan/ended.hpp"
#include "plan/notes.hpp"
#include "refill.hpp"
#include "resources.hpp"
#include "terminate.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::size_t kNonceBytes = 8;
// A worker that has no name after so many hours was left by an `add` that was interrupted.
constexpr double kUntilNamedHours = 2.0 / 60;
// Time in which `health --replace` goes on with a machine that an interrupted one started; then `add` takes it.
constexpr double kReplacementHours = 1;
constexpr std::chrono::seconds kToMark{10};
constexpr const char* kAddQueued = "ADD_QUEUED";
constexpr const char* kYes = "yes";
constexpr const char* kFinished = "no";
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

bool is_marked(const Node& node) {
  const auto mark = node.tags.find(tag::kInterrupted);
  return mark != node.tags.end() && mark->second == kYes;
}

// Whether it may have joined a job meanwhile, or is on its way out: no later `add` counts it as new.
bool has_gone_on(const Node& node) {
  return !node.alive() || (!node.elastic_status.empty() && node.elastic_status != kAddQueued);
}

bool comes_for(const Node& node, const std::string& replaced) {
  const auto found = node.tags.find(tag::kReplaces);
  return found != node.tags.end() && found->second == replaced;
}

// The workers that an interrupted call has started instead of this one.
std::vector<std::string> successors(const Fleet& fleet, const std::string& replaced) {
  std::vector<std::string> found;
  for (const Node* node : fleet.workers()) {
    if (node->alive() && comes_for(*node, replaced)) found.push_back(node->instance_id);
  }
  return found;
}

// The workers that an interrupted `add` left: it marked them, or it was killed and gave them no names. `most` at most.
std::vector<std::string> orphans(const Fleet& fleet, int most) {
  std::vector<std::string> found;
  for (const Node* node : fleet.workers()) {
    const bool is_nameless = !node->named() && hours_of(*node) > kUntilNamedHours;
    const bool is_left = !node->base && !node->launch.empty() && (is_marked(*node) || is_nameless);
    const bool is_expected =
        hours_of(*node) < kReplacementHours &&
        std::ranges::any_of(fleet.nodes, [&](const Node& other) { return comes_for(*node, other.instance_id); });
    if (is_left && !is_expected && !has_gone_on(*node) && std::ssize(found) < most) found.push_back(node->instance_id);
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

// Whether AWS has refused the call: it has started no machines that it does not show yet.
bool is_refusal(const Error& problem) {
  const auto* answer = dynamic_cast<const net::AwsError*>(&problem);
  if (!answer) return false;
  const net::AwsProblem kind = answer->facts().problem;
  return kind != net::AwsProblem::transient && kind != net::AwsProblem::throttled;
}

// The user stops an `add`, or it fails: its machines get a mark, by which the next one takes them on at once. `launch`:
// of the tags of those that EC2 was asked for, whose ids are not known if the answer did not come any more.
void mark_for_the_next(const AwsContext& context, const std::string& cluster, const std::string& launch, Ids ids,
                       const Error& why) {
  if (launch.empty() && ids.empty()) return;
  const auto tell_of_unmarked = [&](const std::string& which) {
    context.say(
        fmt::format("{}: in two minutes, the same command goes on with those without a name; dtrain cluster "
                    "status {} lists all of them",
                    which, cluster));
  };
  std::vector<std::string> marked;
  try {
    net::AwsCalls aws = context.aws.after_stop(kToMark);
    for (const Node& node : read_fleet(aws, cluster).nodes) {
      if (!launch.empty() && node.launch == launch) ids.insert(node.instance_id);
    }
    if (ids.empty()) {
      if (!is_refusal(why)) tell_of_unmarked("EC2 may have started machines");
      return;
    }
    // One that EC2 does not know yet is no reason to leave the others without a mark.
    each_for_itself({ids.begin(), ids.end()}, [&](const std::vector<std::string>& some) {
      set_tags(aws, some, {{tag::kInterrupted, kYes}});
      marked.insert(marked.end(), some.begin(), some.end());
    });
  } catch (const Error& problem) {
    context.say(problem.what());
    if (ids.empty()) tell_of_unmarked("EC2 may have started machines");
  }
  if (!marked.empty()) {
    context.say(fmt::format("started so far, for the same command to go on with: {}", join(marked, ", ")));
  }
  for (const std::string& id : marked) ids.erase(id);
  const std::vector<std::string> unmarked(ids.begin(), ids.end());
  if (!unmarked.empty()) tell_of_unmarked(fmt::format("started, without a mark: {}", join(unmarked, ", ")));
}

// Throws the error that is being handled, with a hint that names the machines that were started.
[[noreturn]] void throw_with_started(const AwsContext& context, const Error& problem, const std::string& cluster,
                                     const std::vector<std::string>& ids) {
  const std::string started = fmt::format(
      "{} {} started: the same command continues with what is there, and dtrain cluster status {} lists all machines",
      join(ids, ", "), ids.size() == 1 ? "was" : "were", cluster);
  const std::string hint = problem.hint().empty() ? started : fmt::format("{}; {}", problem.hint(), started);
  if (const auto* answer = dynamic_cast<const net::AwsError*>(&problem)) {
    throw net::AwsError(problem.what(), hint, answer->facts());
  }
  if (dynamic_cast<const RemoteError*>(&problem) != nullptr) throw RemoteError(problem.what(), hint);
  context.say(started);
  throw;
}

// That of the cluster, or a version of it for the capacity reservation of this `add`.
LaunchTemplate template_for(net::AwsCalls& aws, const ClusterRequest& request, const Fleet& fleet) {
  const auto usual = fleet.options.find("capacity-reservation");
  const std::string& wanted = request.spec.capacity_reservation;
  if (wanted.empty() || (usual != fleet.options.end() && usual->second == wanted)) return *fleet.launch_template;
  return with_reservation(aws, *fleet.launch_template, wanted);
}

// Names the workers and writes down what was done. `launches`: the number of the next launch; 0: none was made.
void finish_add(const AwsContext& context, const Fleet& known, const std::vector<std::string>& ids, int launches,
                AddResult& result) {
  const Ids ours(ids.begin(), ids.end());
  const Fleet now = settle_names(context, known, ours);
  Tags noted{{tag::kLastNode, std::to_string(last_node(now))}};
  if (launches > 0) noted[tag::kLaunches] = std::to_string(launches);
  set_tags(context.aws, {known.group->id}, noted);
  std::vector<std::string> marked;
  for (const Node& node : now.nodes) {
    if (!ours.contains(node.instance_id)) continue;
    if (is_marked(node)) marked.push_back(node.instance_id);
    result.added.push_back(node);
  }
  if (!marked.empty()) set_tags(context.aws, marked, {{tag::kInterrupted, kFinished}});
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
                      const Fleet& fleet, int more, int least, NodeLifecycle lifecycle, const std::string& replaced) {
  require_complete(fleet);
  const bool is_elastic = lifecycle == NodeLifecycle::elastic;
  std::vector<std::string> ids;
  if (!replaced.empty()) {
    ids = successors(fleet, replaced);
  } else if (is_elastic) {
    ids = orphans(fleet, more);
  }
  for (const std::string& id : ids) {
    context.say(fmt::format("{} was started by an interrupted {}", id, replaced.empty() ? "`add`" : "replacement"));
  }
  AddResult result;
  Fleet known = fleet;
  int there = 0;
  for (const std::string& id : ids) there += fleet.find(id)->weight;
  std::vector<std::string> names = next_workers(fleet, std::max(more - there, 0));
  const int number = launch_number(fleet, names);
  const LaunchOrder order{fleet.group->id, number, std::move(names), to_hex(unpredictable_bytes(kNonceBytes))};
  std::string launch;  // empty: EC2 was not asked for machines
  try {
    if (there < more) {
      launch = order.launch_tag();
      Tags tags{{tag::kLaunch, launch}};
      tags.insert(is_elastic ? Tags::value_type{tag::kStatus, kAddQueued} : Tags::value_type{tag::kBase, kYes});
      if (!replaced.empty()) tags[tag::kReplaces] = replaced;
      const int lacking = std::max(least - there, 1);
      const auto fresh =
          launch_workers(context, order, template_for(context.aws, request, fleet),
                         worker_pools(request.spec, account, fleet.head()->zone), tags, lacking, result.workers);
      remember(known, fresh, tags, result.workers);
      ids.insert(ids.end(), fresh.begin(), fresh.end());
    }
    if (ids.empty()) {
      throw NoCapacity(fmt::format("cluster {}: none of {} further workers could be started", fleet.name, more),
                       capacity_hint("try later, or request fewer", result.workers), result.workers);
    }
    finish_add(context, known, ids, launch.empty() ? 0 : order.number + 1, result);
  } catch (const NoCapacity&) {
    throw;
  } catch (const Error& problem) {
    if (is_elastic) mark_for_the_next(context, fleet.name, launch, {ids.begin(), ids.end()}, problem);
    if (!is_elastic && !ids.empty()) throw_with_started(context, problem, fleet.name, ids);
    throw;
  }
  result.workers.wanted = more;
  result.workers.got = 0;
  for (const Node& node : result.added) result.workers.got += node.weight;
  return result;
}

// The names of lost base workers are free, and are given at once; added ones settle theirs with other commands.
void refill_workers(const AwsContext& context, const Fleet& fleet, const std::vector<std::string>& names,
                    const std::vector<Pool>& pools, NodeLifecycle lifecycle, Refill& result) {
  require_complete(fleet);
  const LaunchOrder order{.group_id = fleet.group->id,
                          .number = launch_number(fleet, names),
                          .names = names,
                          .nonce = to_hex(unpredictable_bytes(kNonceBytes)),
                          .heals = true};
  Tags tags{{tag::kLaunch, order.launch_tag()}, {tag::kHealed, kYes}};
  tags.insert(lifecycle == NodeLifecycle::elastic ? Tags::value_type{tag::kStatus, kAddQueued}
                                                  : Tags::value_type{tag::kBase, kYes});
  const auto ids = launch_workers(context, order, *fleet.launch_template, pools, tags, 1, result.workers);
  if (ids.empty()) return;
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
  result.ended = take_ended(known, now);
}

}  // namespace dtrain::cluster
