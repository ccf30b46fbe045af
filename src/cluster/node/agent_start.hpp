// The agent of a job, started on this node on behalf of the user who logs in here.
#pragma once

#include <string>

namespace dtrain::cluster {

// Blocks until the agent joined its job; it lives on then. `join`: elastic::AgentJoin as JSON. Returns what went wrong;
// empty: nothing.
std::string start_agent(const std::string& join, const std::string& login);

}  // namespace dtrain::cluster
