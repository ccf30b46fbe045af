// What a coordinator answers an agent that joins.
#pragma once

#include <string>
#include <vector>

#include <dtrain/elastic/network_crew.hpp>

namespace dtrain::elastic {

// `keep`: of the workers that the agent has, those that go on.
std::string welcome_frame(const NetworkCrewOptions& options, std::vector<WorkerId> keep);

}  // namespace dtrain::elastic
