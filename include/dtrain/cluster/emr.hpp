// Clusters of Amazon EMR: what the service says of one, and one of our own, which carries the cluster's tag.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>
#include <dtrain/net/aws_calls.hpp>

namespace dtrain::cluster {

struct EmrInstance {
  std::string instance_id{}, type{}, market{}, state{};  // state: "RUNNING" and others
  std::string private_ip{}, public_ip{};                 // public_ip: empty where it has none
  std::string launch_time{};                             // as Node's; empty: EMR does not tell
};

// The running instances, the one of the primary node too, by private address as a number. Throws UsageError: none runs;
// and what AwsCalls throws.
std::vector<EmrInstance> running_emr_instances(net::AwsCalls& aws, const std::string& emr_id);

// Pure: in the order of the addresses' numbers, each instance once, without those that do not run.
std::vector<EmrInstance> in_address_order(std::vector<EmrInstance> instances);

// The one that `up` made, unless it has ended: by its name and its tag.
std::optional<EmrCluster> find_emr(net::AwsCalls& aws, const std::string& cluster);
// Its nodes, the head first; workers are called by their instances.
std::vector<Node> emr_nodes(net::AwsCalls& aws, const EmrCluster& emr);

// Makes the cluster as the plan says, and waits until it takes work. Throws AwsError, and Error when EMR gives it up.
UpResult bring_up_emr(const Work& work, const Wish& wish, const Account& account, Fleet fleet, const Plan& plan);
// Ends it and waits until it has ended; what else carries the cluster's tag stays.
void end_emr(const Work& work, const EmrCluster& emr);

// The workers' group is to have so many more instances; returns how many it is to have then.
int grow_emr(net::AwsCalls& aws, const EmrCluster& emr, int more);
// The group is to be smaller by this worker. Throws UsageError while EMR still changes its size.
void shrink_emr(net::AwsCalls& aws, const EmrCluster& emr, const std::string& instance_id);

// Pure: the document of RunJobFlow.
Json emr_order(const Wish& wish, const Account& account, const SecurityGroup& group);

}  // namespace dtrain::cluster
