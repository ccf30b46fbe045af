// The resources around a cluster's instances: each function makes one, or takes the one that is there.
#pragma once

#include <string>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// Tags of everything that belongs to the cluster.
Tags common_tags(const std::string& cluster, const Account& account);

struct GroupMade {
  SecurityGroup group;
  bool is_new = false;  // false: another `up` made it meanwhile
};
GroupMade make_group(net::AwsCalls& aws, const Wish& wish, const Account& account);
// Port 22 is then open to `source` alone.
void set_ssh_rule(net::AwsCalls& aws, const SecurityGroup& group, const std::string& source);
void set_own_rules(net::AwsCalls& aws, const SecurityGroup& group, bool efa);
void import_key(net::AwsCalls& aws, const Wish& wish, const Account& account);
std::string placement_group_name(const std::string& cluster);
void make_placement_group(net::AwsCalls& aws, const Wish& wish, const Account& account);
// What a launch template is made from.
struct TemplateContent {
  const SecurityGroup& group;
  std::string user_data;  // as a script
};
LaunchTemplate make_template(net::AwsCalls& aws, const Wish& wish, const Account& account,
                             const TemplateContent& content);
// Its nodes start by this from now on.
void renew_template(net::AwsCalls& aws, const Wish& wish, const Account& account, const TemplateContent& content,
                    const LaunchTemplate& there);
// The parameters that RunInstances and a launch template have in common; `prefix` as "LaunchTemplateData.".
std::vector<net::HttpField> instance_fields(const std::string& prefix, const Wish& wish, const Account& account,
                                            const SecurityGroup& group, const std::string& user_data,
                                            const std::string& subnet_id);
void set_tags(net::AwsCalls& aws, const std::vector<std::string>& resources, const Tags& tags);

}  // namespace dtrain::cluster
