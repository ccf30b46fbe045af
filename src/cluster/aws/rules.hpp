// The rules of the cluster's security group, and what its tags say of the cluster. A call that says "there already" or
// "not there" counts only after a look at the group.
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

// Every `up` of a cluster takes the secret from its group. A group that an earlier version of dtrain made gets one.
std::string admission_secret(net::AwsCalls& aws, SecurityGroup& group);
// What reconcilers keep: as many base workers as are wanted now, and the workers that `add` started. A wish that was
// changed by hand to nonsense is written anew.
void write_wish(const AwsContext& context, const Fleet& fleet, const ClusterRequest& request);

}  // namespace dtrain::cluster
