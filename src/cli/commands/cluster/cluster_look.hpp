// What a command that only looks at a cluster learns from its head: it has a limit of time, and nothing fails because
// of it.
#pragma once

#include <string>

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/agents.hpp>

#include "config/option_set.hpp"

namespace dtrain::cli {

struct HeadLook {
  std::string unknown{};  // why the head told nothing; empty: it did
  std::string news{};     // what was done for the head, for a person; empty: nothing
  Json answer{};          // to the question

  // The state of the node's agent according to `answer`, which must be a list of nodes.
  cluster::AgentWord agent_of(const cluster::Node& node, const cluster::Fleet& fleet) const;
};

// Brings the program to a head that waits for it, tells the head who belongs to the cluster, and asks. Throws only
// Stopped, after a signal.
HeadLook look_at_head(const cluster::Fleet& fleet, const Json& question);

// --no-head: no such look.
void bind_no_head(config::OptionSet& set, bool& no_head);
// What there is to know without one.
inline HeadLook no_look() { return {.unknown = "not contacted because of --no-head"}; }

}  // namespace dtrain::cli
