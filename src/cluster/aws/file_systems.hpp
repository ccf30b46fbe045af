// Elastic file systems and the addresses at which subnets mount them.
#pragma once

#include <optional>
#include <string>

#include <dtrain/cluster/account.hpp>

namespace dtrain::cluster {

// The file system that `--shared` names, if it exists: the given one, or this cluster's own.
std::optional<FileSystem> find_file_system(net::AwsCalls& aws, const Spec& spec, const std::string& cluster);
// Creates it with a creation token, so that repeated calls create it once.
FileSystem create_file_system(net::AwsCalls& aws, const std::string& cluster, const Tags& tags);
// Creates a mount target, and waits until the file system accepts that. A mount target that exists in the zone is
// returned.
FileSystem::MountTarget create_mount_target(net::AwsCalls& aws, const FileSystem& system, const Subnet& subnet,
                                            const std::string& group);
void delete_mount_target(net::AwsCalls& aws, const std::string& id);
void delete_file_system(net::AwsCalls& aws, const std::string& id);
// Whether the security group is one of the mount target's.
bool uses_group(net::AwsCalls& aws, const std::string& mount_target, const std::string& group);

}  // namespace dtrain::cluster
