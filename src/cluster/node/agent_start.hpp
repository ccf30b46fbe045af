// Starts the agent of a job on this node as its login user.
#pragma once

#include <string>

namespace dtrain::cluster {

// Blocks until the agent has joined its job; the agent lives on. `join`: elastic::AgentOrder as JSON. Returns the
// error; empty: none.
std::string start_agent(const std::string& join, const std::string& login);

}  // namespace dtrain::cluster
