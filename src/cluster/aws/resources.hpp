// The resources around a cluster's instances: each function creates one, or returns the existing one.
#pragma once

#include <string>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// Tags of everything that belongs to the cluster.
Tags common_tags(const std::string& cluster, const Account& account);

struct GroupMade {
  SecurityGroup group;
  bool is_new = false;  // false: a concurrent `up` made it
};
GroupMade make_group(net::AwsCalls& aws, const ClusterRequest& request, const Account& account);
struct ImportedKey {
  std::string name{}, public_key{};
  Tags tags{};
};
// The key pairs that pass one filter of DescribeKeyPairs.
std::vector<ImportedKey> read_key_pairs(net::AwsCalls& aws, const std::string& filter, const std::string& value);
// The first of the cluster's names that no key pair has.
std::string free_key_name(net::AwsCalls& aws, const std::string& cluster);
// Whether two lines of public keys hold the same key; comments do not count.
bool is_same_key(const std::string& a, const std::string& b);
// Imports the user's key. Throws RemoteError if another key has its name.
void import_key(net::AwsCalls& aws, const ClusterRequest& request, const Account& account);
std::string placement_group_name(const std::string& cluster);
void make_placement_group(net::AwsCalls& aws, const ClusterRequest& request, const Account& account);
// The content of a launch template.
struct TemplateContent {
  const SecurityGroup& group;
  std::string user_data;  // the script
};
LaunchTemplate make_template(net::AwsCalls& aws, const ClusterRequest& request, const Account& account,
                             const TemplateContent& content);
// Makes this content the default of the launch template.
void renew_template(net::AwsCalls& aws, const ClusterRequest& request, const Account& account,
                    const TemplateContent& content, const LaunchTemplate& there);
// A further version of the launch template, whose instances run in that capacity reservation. The default stays.
LaunchTemplate with_reservation(net::AwsCalls& aws, const LaunchTemplate& there, const std::string& reservation);
// The parameter of RunInstances and of launch templates.
inline constexpr const char* kReservationField =
    "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId";
// Whether instances need a network interface of their own: for EFA, or for addresses unlike the subnet's default.
bool needs_interface(const Spec& spec, const Account& account);
// The parameters that RunInstances and a launch template have in common; `prefix` is for instance
// "LaunchTemplateData.".
std::vector<net::HttpField> instance_fields(const std::string& prefix, const ClusterRequest& request,
                                            const Account& account, const SecurityGroup& group,
                                            const std::string& user_data, const std::string& subnet_id);
void set_tags(net::AwsCalls& aws, const std::vector<std::string>& resources, const Tags& tags);

}  // namespace dtrain::cluster
