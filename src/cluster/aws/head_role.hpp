// The IAM roles of a cluster: that with which its head follows the tags of its instances (`--elastic-role`) or heals it
// (`--heal`), that with which its workers start a lost head again, and the instance profiles through which instances
// get them. IAM has no regions, so names and paths contain the region. Everything under the cluster's path belongs to
// the cluster.
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

std::string role_name(const std::string& region, const std::string& cluster);  // of the head
std::string worker_role_name(const std::string& region, const std::string& cluster);
std::string role_path(const std::string& region, const std::string& cluster);
// The instance profile of the head; empty: none.
std::string profile_of_head(const ClusterRequest& request, const Account& account);
// The instance profile of the workers; empty: none.
std::string profile_of_workers(const ClusterRequest& request, const Account& account);

// Whether this error is about an instance profile: EC2 sees a new one only after a while.
bool is_about_the_profile(const std::string& code, const std::string& message);

// The rights of the head's role (rights.hpp).
Json role_rights(const ClusterRequest& request, const Account& account);

// Throws AwsError if there is no such instance profile. Without the right to read IAM the check passes; EC2 checks
// again.
void check_profile(net::AwsCalls& aws, const std::string& name);
// Whether make_roles() has completed its last step. false without the right to read IAM.
bool has_roles(net::AwsCalls& aws, const Spec& spec, const std::string& cluster);
// Creates the roles and their profiles, continuing from what exists. Throws RemoteError if a name belongs to something
// else.
void make_roles(net::AwsCalls& aws, const ClusterRequest& request, const Account& account);

// The roles and profiles under the cluster's path, by name. Removing one that is gone is no error. Throws AwsError.
struct OwnRoles {
  std::vector<std::string> profiles{}, roles{};
};
OwnRoles own_roles(net::AwsCalls& aws, const std::string& cluster);
void remove_profile(net::AwsCalls& aws, const std::string& name);
void remove_role(net::AwsCalls& aws, const std::string& name);

}  // namespace dtrain::cluster
