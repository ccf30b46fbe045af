// Whether the agents of a cluster's nodes are registered with its head.
#pragma once

#include <string>
#include <string_view>

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {

struct AgentWord {
  enum class State {
    registered,
    lost,     // it was, and is silent now
    failed,   // its node could not boot
    waiting,  // it knocks, and the head does not admit it
    absent,   // the head has never heard of it
    none,     // there is to be none
    unknown,  // nobody could say
  };
  State state = State::unknown;
  std::string why{};  // beyond the state, for a person; may be empty

  std::string text() const;  // "registered", "failed: prepare ended with exit code 7"
  friend bool operator==(const AgentWord&, const AgentWord&) = default;
};
std::string_view name_of(AgentWord::State state);

// Pure. `list`: the head's dtrain.cluster-nodes/1. Throws DataError for one that is none.
AgentWord agent_of(const Node& node, const Fleet& fleet, const Json& list);

}  // namespace dtrain::cluster
