// The coordinator's answer to an agent that joins.
#pragma once

#include <string>
#include <vector>

#include <dtrain/elastic/network_agent_pool.hpp>

namespace dtrain::elastic {

// `keep`: the agent's workers that continue.
std::string welcome_frame(const NetworkAgentPoolOptions& options, std::vector<WorkerId> keep);

}  // namespace dtrain::elastic
