#include <fmt/format.h>

#include <algorithm>

#include <dtrain/cluster/agents.hpp>

namespace dtrain::cluster {
namespace {

using AgentState = AgentWord::State;

// The entry of the list with this value of `key`; nullptr: there is none.
const Json* entry(const Json& list, const char* name, const char* key, const std::string& value) {
  for (const Json& one : list.at(name).as_array()) {
    if (one.at(key).as_string() == value) return &one;
  }
  return nullptr;
}

}  // namespace

std::string AgentWord::text() const {
  const std::string name = enum_name(kAgentStateNames, state);
  return why.empty() ? name : fmt::format("{}: {}", name, why);
}

AgentWord agent_of(const Node& node, const Fleet& fleet, const Json& list) {
  if (fleet.emr) return {AgentState::none, "EMR runs it"};
  if (const Json* known = entry(list, "nodes", "instance_id", node.instance_id)) {
    return known->at("connected").as_bool() ? AgentWord{AgentState::registered}
                                            : AgentWord{AgentState::lost, "it is silent, or off"};
  }
  if (const Json* failure = entry(list, "failures", "address", node.private_ip)) {
    return {AgentState::failed, fmt::format("{} ended with exit code {}", failure->at("stage").as_string(),
                                            failure->at("exit_code").as_integer())};
  }
  if (const Json* waiting = entry(list, "waiting", "instance_id", node.instance_id)) {
    return {AgentState::waiting, waiting->at("reason").as_string()};
  }
  if (node.role == Role::head && fleet.options.contains("head-only")) return {AgentState::none, "it takes no part"};
  return {AgentState::absent, "it boots, or cannot reach the head"};
}

std::vector<Json> failed_boots(const Fleet& fleet, const Json& list) {
  std::vector<Json> failed;
  for (const Json& one : list.at("failures").as_array()) {
    const std::string& address = one.at("address").as_string();
    if (std::ranges::find(fleet.nodes, address, &Node::private_ip) != fleet.nodes.end()) failed.push_back(one);
  }
  return failed;
}

}  // namespace dtrain::cluster
