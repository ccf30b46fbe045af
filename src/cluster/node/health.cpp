#include <dtrain/cluster/health.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/cost.hpp>

#include "aws/ec2_fields.hpp"
#include "aws/parallel.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::size_t kMostIds = 100;  // in one call that names instances
// Time until a node is registered: the deadlines of NodeBoot for the bundle, and for a prepare command.
constexpr double kHoursToBoot = 0.5, kHoursToPrepare = 1;

bool is_bad(const std::string& status) { return status == "impaired" || status == "insufficient-data"; }

// EC2 lists a scheduled event for some days after it has taken place or was called off, and says so in its description.
bool is_over(const std::string& description) {
  return description.starts_with("[Completed]") || description.starts_with("[Canceled]");
}

// Reads the status of some nodes; calls in parallel have different nodes.
void read_some(net::AwsCalls& aws, const std::vector<std::string>& ids,
               const std::map<std::string, NodeHealth*>& by_id) {
  Fields fields{{"IncludeAllInstances", "true"}};
  add_list(fields, "InstanceId", ids);
  for (const net::Element& one : aws.query_all(net::kEc2, "DescribeInstanceStatus", fields, "instanceStatusSet")) {
    const auto found = by_id.find(one.value("instanceId"));
    if (found == by_id.end()) continue;
    NodeHealth& health = *found->second;
    health.system = one.at("systemStatus").value("status");
    health.instance = one.at("instanceStatus").value("status");
    for (const net::Element& event : one.list("eventsSet")) {
      if (!is_over(event.value("description"))) health.event = event.value("code");
    }
  }
}

// The types are only advice: without the right to read them they are unknown.
std::map<std::string, MachineType> types_in(net::AwsCalls& aws, const Fleet& fleet) {
  std::set<std::string> names;
  for (const Node& node : fleet.nodes) names.insert(node.type);
  try {
    return read_types(aws, {names.begin(), names.end()});
  } catch (const net::AwsError&) {
    return {};
  }
}

bool can_boot_still(const Node& node, const Fleet& fleet) {
  return hours_of(node) < kHoursToBoot + (fleet.options.contains("prepare") ? kHoursToPrepare : 0);
}

}  // namespace

std::vector<std::string> NodeHealth::troubles() const {
  std::vector<std::string> all;
  if (!node.alive()) all.push_back(fmt::format("it is {}", node.state));
  if (is_bad(system)) all.push_back(fmt::format("the machine below it is {}", system));
  if (is_bad(instance)) all.push_back(fmt::format("it does not answer EC2's check ({})", instance));
  if (!event.empty()) all.push_back(fmt::format("AWS plans: {}", event));
  using State = AgentWord::State;
  const bool is_late = agent.state == State::absent || agent.state == State::waiting;
  if (agent.state == State::lost || agent.state == State::failed || (is_late && !boots_still)) {
    all.push_back(fmt::format("its agent is {}", agent.text()));
  }
  if (clock && clock->is_wrong()) all.push_back(fmt::format("its clock is {:+.1f} s off the head's", clock->seconds));
  for (std::string& trouble : reported()) all.push_back(std::move(trouble));
  return all;
}

std::vector<std::string> NodeHealth::reported() const {
  if (!checkup) return {};
  std::vector<std::string> all = troubles_of(*checkup, gpus_of_type);
  if (const net::EndNotice* told = notice()) {
    all.push_back(fmt::format("AWS {} it back: {}", told->is_final ? "takes" : "may soon take", told->text));
  }
  return all;
}

std::string NodeHealth::why() const { return join(troubles(), "; "); }

std::string NodeHealth::gpu_text() const {
  if (!checkup) return gpus_of_type == 0 ? "no GPU" : "GPUs unknown";
  const bool has_none = gpus_of_type ? *gpus_of_type == 0 : checkup->gpu_error.empty();
  if (checkup->gpus.empty() && has_none) return "no GPU";
  return count_text(checkup->gpus.size(), "GPU");
}

std::vector<NodeHealth> read_health(net::AwsCalls& aws, const Fleet& fleet) {
  std::vector<NodeHealth> all;
  for (const Node& node : fleet.nodes) {
    all.push_back({.node = node, .boots_still = can_boot_still(node, fleet)});
  }
  std::map<std::string, NodeHealth*> by_id;
  std::vector<std::string> ids;
  for (NodeHealth& one : all) {
    by_id[one.node.instance_id] = &one;
    ids.push_back(one.node.instance_id);
  }
  std::map<std::string, MachineType> types;
  std::vector<std::function<void()>> pieces{[&] { types = types_in(aws, fleet); }};
  for (std::size_t at = 0; at < ids.size(); at += kMostIds) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(kMostIds, ids.size() - at));
    pieces.push_back([&, some = std::vector(begin, end)] { read_some(aws, some, by_id); });
  }
  do_all(pieces);
  for (NodeHealth& one : all) {
    const auto type = types.find(one.node.type);
    if (type != types.end()) one.gpus_of_type = type->second.gpus;
  }
  return all;
}

void add_answer_of_head(const Fleet& fleet, const Json& answer, std::vector<NodeHealth>& all) {
  std::map<std::string, const Json*> reports;
  for (const Json& node : answer.at("nodes").as_array()) {
    if (const Json* report = node.find("report")) reports[node.at("instance_id").as_string()] = report;
  }
  const Json* asked = answer.find("reports");
  for (NodeHealth& one : all) {
    one.agent = agent_of(one.node, fleet, answer);
    const auto report = reports.find(one.node.instance_id);
    if (report != reports.end()) one.checkup = checkup_from_json(*report->second);
    const Json* found = asked ? asked->find(one.node.instance_id) : nullptr;
    if (!found) continue;
    one.checkup = checkup_from_json(found->at("report"));
    one.clock = {found->at("clock_offset_seconds").as_number(), found->at("clock_within_seconds").as_number()};
  }
}

}  // namespace dtrain::cluster
