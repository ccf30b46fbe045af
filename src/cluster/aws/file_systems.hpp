// Elastic file systems and the addresses at which subnets mount them; file systems of FSx for Lustre.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/account.hpp>

namespace dtrain::cluster {

// The file system that `--shared` names, if it exists: the given one, or this cluster's own.
std::optional<FileSystem> find_file_system(net::AwsCalls& aws, const Spec& spec, const std::string& cluster);
// Creates it with a creation token, so that repeated calls create it once. `kms_key`: an ARN; empty: AWS's own key.
FileSystem create_file_system(net::AwsCalls& aws, const std::string& cluster, const Tags& tags,
                              const std::string& kms_key);
// Creates a mount target, and waits until the file system accepts that. A mount target that exists in the zone is
// returned.
FileSystem::MountTarget create_mount_target(net::AwsCalls& aws, const FileSystem& system, const Subnet& subnet,
                                            const std::string& group);
// The same of FSx for Lustre: in one subnet, which the nodes of others reach too.
struct LustreOrder {
  int gigabytes = 0;
  std::string subnet_id{}, group_id{}, kms_key{};
  Tags tags{};
};
// Waits, at most for `patience`, until FSx knows under which name it is mounted, but not until it can be.
FileSystem create_lustre(net::AwsCalls& aws, const std::string& cluster, const LustreOrder& order,
                         std::chrono::milliseconds patience);
// Waits until it can be mounted, which takes about ten minutes. Throws RemoteError if FSx could not make it.
void wait_for_lustre(net::AwsCalls& aws, const std::string& id, std::chrono::milliseconds patience);
// nullopt: it is gone.
[[nodiscard]] std::optional<std::string> lustre_state(net::AwsCalls& aws, const std::string& id);

void delete_mount_target(net::AwsCalls& aws, const std::string& id);
void delete_file_system(net::AwsCalls& aws, const FileSystem& system);
// The ids of the mount target's security groups.
std::vector<std::string> groups_of_target(net::AwsCalls& aws, const std::string& mount_target);
void set_groups_of_target(net::AwsCalls& aws, const std::string& mount_target, const std::vector<std::string>& groups);

}  // namespace dtrain::cluster
