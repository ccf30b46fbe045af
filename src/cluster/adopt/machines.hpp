// The machines of a stack.
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/stack.hpp>

namespace dtrain::cluster {

StackMachine stack_machine_of(const net::Element& instance);
// Those that exist, by their ids.
std::vector<StackMachine> read_machines(net::AwsCalls& aws, const std::vector<std::string>& ids);
void set_security_groups(net::AwsCalls& aws, const std::string& instance_id, const std::vector<std::string>& groups);

}  // namespace dtrain::cluster
