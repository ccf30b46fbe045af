// The rules of the cluster's security group. A call that says "there already" or "not there" counts only after a look
// at the group.
#pragma once

#include <string>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// Opens port 22 to `source` and to nothing else.
void set_ssh_rule(net::AwsCalls& aws, const SecurityGroup& group, const std::string& source);
// Opens all ports between the nodes.
void set_own_rules(net::AwsCalls& aws, const SecurityGroup& group, bool efa);

// Pure: whether two CIDRs are the same block; EC2 stores 10.1.2.3/8 as 10.0.0.0/8.
bool is_same_block(const std::string& a, const std::string& b);

}  // namespace dtrain::cluster
