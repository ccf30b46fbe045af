// Whether the agents of a cluster's nodes are registered with its head.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {

struct AgentWord {
  enum class State {
    registered,
    lost,     // it was registered, and is silent now
    failed,   // its node could not boot
    waiting,  // it asks to join, and the head does not admit it
    absent,   // the head has never received a message from it
    none,     // the node needs no agent
    unknown,  // the head could not be asked
  };
  State state = State::unknown;
  std::string why{};  // detail for the user; may be empty

  std::string text() const;  // "registered", "failed: prepare ended with exit code 7"
  friend bool operator==(const AgentWord&, const AgentWord&) = default;
};
constexpr EnumName<AgentWord::State> kAgentStateNames[] = {
    {AgentWord::State::registered, "registered"}, {AgentWord::State::lost, "lost"},
    {AgentWord::State::failed, "failed"},         {AgentWord::State::waiting, "waiting"},
    {AgentWord::State::absent, "absent"},         {AgentWord::State::none, "none"},
    {AgentWord::State::unknown, "unknown"}};

// Pure. `list`: the head's document dtrain.cluster-nodes/1. Throws DataError if it is another document.
AgentWord agent_of(const Node& node, const Fleet& fleet, const Json& list);
// The failed boots of machines of the fleet, in the same document. The head also remembers those of machines that have
// ended since.
std::vector<Json> failed_boots(const Fleet& fleet, const Json& list);

}  // namespace dtrain::cluster
