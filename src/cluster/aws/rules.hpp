// The rules of the cluster's security group. A call that says "there already" or "not there" counts only after a look
// at the group.
#pragma once

#include <string>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// The description of the rules for port 22 that dtrain makes.
inline constexpr const char* kOwnRule = "dtrain";
inline constexpr const char* kDescribed = "described";  // value of tag::kRules

// Opens port 22 to `source`, and closes it to the blocks to which dtrain opened it before. What others opened stays.
void set_ssh_rule(net::AwsCalls& aws, const SecurityGroup& group, const std::string& source);
// Opens all ports between the nodes.
void set_own_rules(net::AwsCalls& aws, const SecurityGroup& group, bool efa);

}  // namespace dtrain::cluster
