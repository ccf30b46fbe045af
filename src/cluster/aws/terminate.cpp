#include "terminate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/text.hpp>

#include "ec2_fields.hpp"
#include "resources.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::size_t kMostIds = 500;       // in one call
constexpr std::size_t kMostFiltered = 200;  // values of one filter
// Time for another `up` to name its workers, or to end those whose names are taken; and how often it gets that. After
// that, the other `up` has ended, and this one ends its own workers.
constexpr std::chrono::seconds kForTheOther{2};
constexpr int kLooksForTheOther = 3;

using Ids = std::vector<std::string>;

// Whether the error concerns single instances, so that the call may succeed for the others.
bool is_about_single_ids(const net::AwsError& problem) {
  constexpr std::array kCodes{"InvalidInstanceID.Malformed", "IncorrectInstanceState", "UnsupportedOperation"};
  const net::AwsProblem kind = problem.facts().problem;
  return kind == net::AwsProblem::not_found || kind == net::AwsProblem::guarded || kind == net::AwsProblem::capacity ||
         std::ranges::find(kCodes, problem.facts().code) != kCodes.end();
}

// Whether another `up` is still to name a worker, or to end one that has a name of `ours`.
bool is_contested(const Fleet& fleet, const std::set<std::string>& ours) {
  return !names_for(fleet, ours, true).empty() || std::ranges::any_of(fleet.workers(), [&](const Node* node) {
    return node->base && node->alive() && !node->named() && !ours.contains(node->instance_id);
  });
}

bool is_gone(const net::AwsError& problem) {
  return problem.facts().problem == net::AwsProblem::not_found || problem.facts().code == "InvalidInstanceID.Malformed";
}

// The ids in parts of which each is smaller: those that the message names, and the others; else two halves.
std::vector<Ids> parts_of(const Ids& ids, const std::string& message) {
  Ids named = ids;
  const auto others =
      std::ranges::stable_partition(named, [&](const auto& id) { return message.find(id) != message.npos; });
  const Ids rest(others.begin(), others.end());
  named.erase(others.begin(), named.end());
  if (!named.empty() && !rest.empty()) return {rest, named};
  const auto middle = ids.begin() + std::ssize(ids) / 2;
  return {Ids(ids.begin(), middle), Ids(middle, ids.end())};
}

}  // namespace

std::vector<Refused> each_for_itself(const Ids& ids, const std::function<void(const Ids&)>& call) {
  try {
    if (!ids.empty()) call(ids);
    return {};
  } catch (const net::AwsError& problem) {
    if (!is_about_single_ids(problem)) throw;
    if (ids.size() == 1) {
      if (is_gone(problem)) return {};
      return {{ids.front(), problem}};
    }
    std::vector<Refused> refused;
    for (const Ids& part : parts_of(ids, problem.facts().message)) {
      for (Refused& one : each_for_itself(part, call)) refused.push_back(std::move(one));
    }
    return refused;
  }
}

std::vector<Refused> request_each(net::AwsCalls& aws, const char* action, const Ids& ids) {
  std::vector<Refused> refused;
  for (std::size_t at = 0; at < ids.size(); at += kMostIds) {
    const Ids part(ids.begin() + static_cast<std::ptrdiff_t>(at),
                   ids.begin() + static_cast<std::ptrdiff_t>(std::min(at + kMostIds, ids.size())));
    const auto call = [&](const Ids& some) {
      Fields fields;
      add_list(fields, "InstanceId", some);
      aws.query(net::kEc2, action, std::move(fields));
    };
    for (Refused& one : each_for_itself(part, call)) refused.push_back(std::move(one));
  }
  return refused;
}

std::vector<Refused> terminate(net::AwsCalls& aws, const Ids& ids) {
  return request_each(aws, "TerminateInstances", ids);
}

std::vector<Refused> terminate_allowed(net::AwsCalls& aws, const Ids& ids) try {
  return terminate(aws, ids);
} catch (const net::AwsError& problem) {
  if (problem.facts().problem != net::AwsProblem::denied) throw;
  std::vector<Refused> refused;
  for (const std::string& id : ids) refused.push_back({id, problem});
  return refused;
}

void end_instances(const AwsContext& context, const std::vector<std::string>& instance_ids) {
  if (instance_ids.empty()) return;
  const std::vector<Refused> refused = terminate(context.aws, instance_ids);
  if (!refused.empty()) throw refused.front().why;
  if (!context.wait) return;
  // A filter, unlike a list of ids, is no error where an instance is gone.
  wait_until(context.patience, "the instances are gone", [&] {
    for (std::size_t at = 0; at < instance_ids.size(); at += kMostFiltered) {
      Fields fields{{"Filter.1.Name", "instance-id"}};
      const auto begin = instance_ids.begin() + static_cast<std::ptrdiff_t>(at);
      add_list(fields, "Filter.1.Value",
               {begin, begin + std::min<std::ptrdiff_t>(instance_ids.end() - begin, kMostFiltered)});
      for (const net::Element& reservation :
           context.aws.query_all(net::kEc2, "DescribeInstances", fields, "reservationSet")) {
        for (const net::Element& one : reservation.list("instancesSet")) {
          if (node_of(one).state != "terminated") return false;
        }
      }
    }
    return true;
  });
}

std::vector<std::string> end_doubles(const AwsContext& context, const Fleet& known,
                                     const std::map<std::string, std::string>& names, std::set<std::string> ours) {
  Ids ended;
  for (int look = 0;; ++look) {
    const bool is_last = look == kLooksForTheOther;
    Fleet now = with_names(read_fleet_with(context.aws, known), names);
    std::erase_if(now.nodes, [&](const Node& node) { return std::ranges::count(ended, node.instance_id) > 0; });
    Ids doubles;
    for (const auto& [id, free_name] : names_for(now, ours, is_last)) doubles.push_back(id);
    if (!doubles.empty()) {
      context.say(fmt::format("ending {}: another `up` at the same time has started workers of the same names",
                              join(doubles, ", ")));
      end_instances(context, doubles);
      for (const std::string& id : doubles) ours.erase(id);
      ended.insert(ended.end(), doubles.begin(), doubles.end());
    }
    // Of two workers that started within one second, that of the other `up` may count as the later. Where it is there
    // at the last look, the other `up` has ended, and this one ends its own.
    if (is_last || (doubles.empty() && !is_contested(now, ours))) return ended;
    pause_for(kForTheOther);
  }
}

void end_node(const AwsContext& context, const Node& node) {
  set_tags(context.aws, {node.instance_id}, {{tag::kStatus, "REMOVAL_QUEUED"}});
  end_instances(context, {node.instance_id});
  set_tags(context.aws, {node.instance_id}, {{tag::kStatus, "REMOVED"}});
}

}  // namespace dtrain::cluster
