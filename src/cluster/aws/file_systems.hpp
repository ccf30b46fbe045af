// Elastic file systems and the addresses at which subnets mount them; file systems of FSx for Lustre.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// The file system that `--shared` names, if it exists: the given one, or this cluster's own.
std::optional<FileSystem> find_file_system(net::AwsCalls& aws, const Spec& spec, const std::string& cluster);
// Creates it with a creation token, so that repeated calls create it once. `group`: the id of the cluster's security
// group, for which it is made.
FileSystem make_efs(net::AwsCalls& aws, const std::string& cluster, const Account& account, const std::string& group);
// One mount target in every zone with nodes: creates those that are missing, and waits until the file system accepts
// that.
void make_mount_targets(const AwsContext& context, FileSystem& system, const Account& account, const Fleet& fleet);
// The same of FSx for Lustre: in one subnet, which the nodes of others reach too. Waits, at most for `patience`, until
// FSx knows under which name it is mounted, but not until it can be.
FileSystem make_lustre(net::AwsCalls& aws, const ClusterRequest& order, const Account& account,
                       const std::string& group, std::chrono::milliseconds patience);
// Waits until it can be mounted, which takes about ten minutes; `meanwhile` is called at each look. Throws RemoteError
// if FSx could not make it.
void wait_for_lustre(net::AwsCalls& aws, const std::string& id, std::chrono::milliseconds patience,
                     const std::function<void()>& meanwhile);
// nullopt: it is gone.
[[nodiscard]] std::optional<std::string> lustre_state(net::AwsCalls& aws, const std::string& id);

// Whether all of the cluster's file systems were made by the `up` that gives it up: one that was kept stays, also where
// the present options name none. False: also where these keys may not read them.
[[nodiscard]] bool may_delete_storage(net::AwsCalls& aws, Fleet begun, const ClusterRequest& request);

void delete_mount_target(net::AwsCalls& aws, const std::string& id);
void delete_file_system(net::AwsCalls& aws, const FileSystem& system);
// The ids of the mount target's security groups.
std::vector<std::string> groups_of_target(net::AwsCalls& aws, const std::string& mount_target);
void set_groups_of_target(net::AwsCalls& aws, const std::string& mount_target, const std::vector<std::string>& groups);

}  // namespace dtrain::cluster
