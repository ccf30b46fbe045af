#include <dtrain/cluster/health.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ec2_fields.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::size_t kMostIds = 100;  // of one call that names instances

bool is_bad(const std::string& status) { return status == "impaired" || status == "insufficient-data"; }

void read_some(net::AwsCalls& aws, const std::vector<std::string>& ids, std::map<std::string, NodeHealth*>& by_id) {
  Fields fields{{"IncludeAllInstances", "true"}};
  add_list(fields, "InstanceId", ids);
  for (const net::Element& one : aws.query_all(net::kEc2, "DescribeInstanceStatus", fields, "instanceStatusSet")) {
    const auto found = by_id.find(one.value("instanceId"));
    if (found == by_id.end()) continue;
    NodeHealth& health = *found->second;
    health.system = one.at("systemStatus").value("status");
    health.instance = one.at("instanceStatus").value("status");
    for (const net::Element& event : one.list("eventsSet")) health.event = event.value("code");
  }
}

}  // namespace

bool NodeHealth::well() const { return why().empty(); }

std::string NodeHealth::why() const {
  if (!node.alive()) return fmt::format("it is {}", node.state);
  if (is_bad(system)) return fmt::format("the machine below it is {}", system);
  if (is_bad(instance)) return fmt::format("it does not answer EC2's check ({})", instance);
  if (!event.empty()) return fmt::format("AWS plans: {}", event);
  return {};
}

std::vector<NodeHealth> read_health(net::AwsCalls& aws, const Fleet& fleet) {
  std::vector<NodeHealth> all;
  for (const Node& node : fleet.nodes) all.push_back({.node = node});
  std::map<std::string, NodeHealth*> by_id;
  std::vector<std::string> ids;
  for (NodeHealth& one : all) {
    by_id[one.node.instance_id] = &one;
    ids.push_back(one.node.instance_id);
  }
  for (std::size_t at = 0; at < ids.size(); at += kMostIds) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(at);
    read_some(aws, {begin, begin + static_cast<std::ptrdiff_t>(std::min(kMostIds, ids.size() - at))}, by_id);
  }
  return all;
}

}  // namespace dtrain::cluster
