// The resources around a cluster's instances: each function creates one, or returns the existing one.
#pragma once

#include <string>

#include <dtrain/cluster/change.hpp>

#include "ec2_fields.hpp"

namespace dtrain::cluster {

// Tags of everything that belongs to the cluster.
Tags common_tags(const std::string& cluster, const Account& account);
// The name of a node as the console of AWS shows it; `node` is "worker" for those that have no name yet.
std::string shown_name(const std::string& cluster, const std::string& node);
// The tags that name a node: its name in the cluster, and that one.
Tags name_tags(const std::string& cluster, const std::string& node);

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
// A launch template of the cluster.
struct TemplateOrder {
  std::string cluster;      // whose tag it carries
  std::string stem;         // of its name, which begins with "dtrain-"
  Tags tags;                // its own
  Fields data;              // with the prefix kTemplateData
  std::string distinction;  // orders that differ in their data differ in it
};
inline constexpr const char* kTemplateData = "LaunchTemplateData.";
// Makes it, or takes the one that a concurrent `up` has made.
LaunchTemplate make_template(net::AwsCalls& aws, const TemplateOrder& order);
// Makes this content the default of the launch template.
void renew_template(net::AwsCalls& aws, const TemplateOrder& order, const LaunchTemplate& there);

// The content of the launch template of workers.
struct TemplateContent {
  const SecurityGroup& group;
  std::string user_data;  // the script
};
// The launch template by which workers start a lost head again. It holds everything that a head has, its subnet and its
// private address too, so that a worker needs no right to choose, and EC2 itself lets no second head start: an address
// belongs to one machine. `head`: the present one, whose type, subnet and address a later one gets.
TemplateOrder template_of_head(const ClusterRequest& request, const Account& account, const SecurityGroup& group,
                               const std::string& user_data, const Node& head);
TemplateOrder template_of_workers(const ClusterRequest& request, const Account& account,
                                  const TemplateContent& content);
// A further version of the launch template, whose instances run in that capacity reservation. The default stays.
LaunchTemplate with_reservation(net::AwsCalls& aws, const LaunchTemplate& there, const std::string& reservation);
// The parameter of RunInstances and of launch templates.
inline constexpr const char* kReservationField =
    "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId";
// Whether instances need a network interface of their own: for EFA, or for addresses unlike the subnet's default.
bool needs_interface(const Spec& spec, const Account& account);
// The parameters that RunInstances and a launch template have in common; `prefix` is for instance
// "LaunchTemplateData.".
Fields instance_fields(const std::string& prefix, const ClusterRequest& request, const Account& account,
                       const SecurityGroup& group, const std::string& user_data, const std::string& subnet_id);
// The same without those that place it into a network.
Fields machine_fields(const std::string& prefix, const ClusterRequest& request, const Account& account,
                      const std::string& user_data);
// A network interface of its own; no subnet is named where `subnet_id` is empty.
Fields interface_fields(const std::string& prefix, const Spec& spec, const SecurityGroup& group,
                        const std::string& subnet_id);
void set_tags(net::AwsCalls& aws, const std::vector<std::string>& resources, const Tags& tags);

}  // namespace dtrain::cluster
