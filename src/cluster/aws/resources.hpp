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
// Opens port 22 to `source` and to nothing else.
void set_ssh_rule(net::AwsCalls& aws, const SecurityGroup& group, const std::string& source);
void set_own_rules(net::AwsCalls& aws, const SecurityGroup& group, bool efa);
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
// The parameters that RunInstances and a launch template have in common; `prefix` is for instance
// "LaunchTemplateData.".
std::vector<net::HttpField> instance_fields(const std::string& prefix, const ClusterRequest& request,
                                            const Account& account, const SecurityGroup& group,
                                            const std::string& user_data, const std::string& subnet_id);
void set_tags(net::AwsCalls& aws, const std::vector<std::string>& resources, const Tags& tags);

}  // namespace dtrain::cluster
