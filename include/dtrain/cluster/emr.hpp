// Clusters of Amazon EMR: what the service says of one.
#pragma once

#include <string>
#include <vector>

#include <dtrain/net/aws_calls.hpp>

namespace dtrain::cluster {

struct EmrInstance {
  std::string instance_id{}, type{}, state{};  // state: "RUNNING" and others
  std::string private_ip{}, public_ip{};       // public_ip: empty where it has none
};

// The running instances, the one of the primary node too, by private address as a number. Throws UsageError: none runs;
// and what AwsCalls throws.
std::vector<EmrInstance> running_emr_instances(net::AwsCalls& aws, const std::string& emr_id);

// Pure: in the order of the addresses' numbers, each instance once, without those that do not run.
std::vector<EmrInstance> in_address_order(std::vector<EmrInstance> instances);

}  // namespace dtrain::cluster
