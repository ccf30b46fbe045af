// Clusters of Amazon EMR: those of other users, and the one that `up` makes, which carries the cluster's tag.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>
#include <dtrain/net/aws_calls.hpp>

namespace dtrain::cluster {

struct EmrInstance {
  std::string instance_id{}, type{}, market{}, state{};  // state: "RUNNING" and others
  std::string private_ip{}, public_ip{};                 // public_ip is empty if the instance has none
  std::string launch_time{};                             // as in Node; empty: unknown
};

// The running instances, including the primary node, in the numeric order of their private addresses. Throws UsageError
// if none runs, and whatever AwsCalls throws.
std::vector<EmrInstance> running_emr_instances(net::AwsCalls& aws, const std::string& emr_id);

// Pure: the running instances, each once, in the numeric order of their addresses.
std::vector<EmrInstance> in_address_order(std::vector<EmrInstance> instances);

// The cluster that `up` made, found by its name and tag, unless it has ended.
[[nodiscard]] std::optional<EmrCluster> find_emr(net::AwsCalls& aws, const std::string& cluster);
// Its nodes, the head first; workers have the ids of their instances as names.
std::vector<Node> emr_nodes(net::AwsCalls& aws, const EmrCluster& emr);

// Creates the cluster as the plan says, and waits until it accepts steps. Throws AwsError, and Error when EMR
// terminates it.
UpResult bring_up_emr(const AwsContext& context, const ClusterRequest& request, const Account& account, Fleet fleet,
                      const Plan& plan);
// Terminates it and waits until it has ended. Other resources with the cluster's tag stay.
void end_emr(const AwsContext& context, const EmrCluster& emr);

// Enlarges the workers' group by `more` instances; returns its new size.
int grow_emr(net::AwsCalls& aws, const EmrCluster& emr, int more);
// Removes this worker from the group. Throws UsageError while EMR still resizes it.
void shrink_emr(net::AwsCalls& aws, const EmrCluster& emr, const std::string& instance_id);

// Pure: the document of RunJobFlow.
Json emr_order(const ClusterRequest& request, const Account& account, const SecurityGroup& group);

}  // namespace dtrain::cluster
