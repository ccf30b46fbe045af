// An agent that a cluster's own starter holds: to the starter the process that it started is the agent.
#pragma once

#include <optional>
#include <string>

#include <dtrain/base/error.hpp>

namespace dtrain::job {

// Forks, so no other thread may run yet, and returns nothing in the agent, in a session of its own. The process that
// was started stays: it passes signals on, and when the agent has ended, however it did, ends all that carries the
// mark. What carries the spared mark may outlive the agent; it is waited for, because the starter would end it with
// this process. Returns how the agent ended. If this process is killed, the agent is told to end.
std::optional<ExitCode> keep_agent(const std::string& mark, const std::string& spared_mark);

}  // namespace dtrain::job
