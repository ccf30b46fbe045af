// The role by which the head of a cluster may follow the tags of its instances (`--elastic-role`), and the instance
// profile in which an instance gets it. IAM knows no regions, so names and paths tell which one is meant; whatever is
// under the cluster's path is the cluster's.
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

std::string role_name(const std::string& region, const std::string& cluster);
std::string role_path(const std::string& region, const std::string& cluster);
// What the head is launched with; empty: nothing.
std::string profile_of_head(const Wish& wish, const Account& account);

// Who may take the role, and what it may do: read what instances there are, set the status tag of this cluster's, and
// end its workers.
Json role_trust();
Json role_rights(const std::string& cluster, const Account& account);

// Who may not read IAM is believed; EC2 will tell. Throws AwsError: there is none of that name.
void check_profile(net::AwsCalls& aws, const std::string& name);
// The last thing that make_role() does is done. Not so for who may not read IAM.
bool has_role(net::AwsCalls& aws, const std::string& cluster);
// Goes on from what is there. Throws RemoteError: somebody else has the name.
void make_role(net::AwsCalls& aws, const Wish& wish, const Account& account);

// Under the cluster's path, by name. What is gone already is removed. AwsError.
struct OwnRoles {
  std::vector<std::string> profiles{}, roles{};
};
OwnRoles own_roles(net::AwsCalls& aws, const std::string& cluster);
void remove_profile(net::AwsCalls& aws, const std::string& name);
void remove_role(net::AwsCalls& aws, const std::string& name);

}  // namespace dtrain::cluster
