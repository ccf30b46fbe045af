// Calls about Auto Scaling groups.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <dtrain/cluster/stack.hpp>

namespace dtrain::cluster {

// By the names of the groups, and what the template calls each.
std::vector<ScalingGroup> read_scaling_groups(net::AwsCalls& aws, const std::map<std::string, std::string>& names);
// `processes`: apart by commas.
void suspend_scaling(net::AwsCalls& aws, const std::string& group, const std::string& processes);
void resume_scaling(net::AwsCalls& aws, const std::string& group, const std::string& processes);
// Sets how many machines the group wants, and lowers its least number where that is above.
void want_machines(net::AwsCalls& aws, const ScalingGroup& group, int machines);

}  // namespace dtrain::cluster
