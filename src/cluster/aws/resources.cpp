#include "resources.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/base64.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/text.hpp>

#include "ec2_fields.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

// Limit of names that are tried when others have taken them.
constexpr int kMostNames = 5;
constexpr int kLooks = 4;
constexpr std::size_t kTokenSize = 32;
constexpr std::chrono::milliseconds kBetweenLooks{300};

std::string resource_name(const std::string& cluster, int number) {
  return number == 0 ? "dtrain-" + cluster : fmt::format("dtrain-{}-{}", cluster, number);
}

bool is_ours(const Tags& tags, const std::string& cluster) {
  const auto found = tags.find(tag::kCluster);
  return found != tags.end() && found->second == cluster;
}

[[noreturn]] void names_are_taken(const std::string& kind, const std::string& cluster) {
  throw RemoteError(fmt::format("the names {} to {} are taken by {}s that are not of cluster {}",
                                resource_name(cluster, 0), resource_name(cluster, kMostNames - 1), kind, cluster),
                    "choose another name for the cluster");
}

// Calls make() with one name after the other; if a name is taken, find() decides whether the resource is ours.
template <typename Found, typename Make, typename Find>
Found make_or_take(const std::string& kind, const std::string& cluster, const Make& make, const Find& find) {
  for (int number = 0; number < kMostNames; ++number) {
    const std::string name = resource_name(cluster, number);
    try {
      return make(name);
    } catch (const net::AwsError& problem) {
      if (problem.facts().problem != net::AwsProblem::exists) throw;
    }
    if (std::optional<Found> there = find(name)) return std::move(*there);
  }
  names_are_taken(kind, cluster);
}

// An existing rule counts as added, a missing one as removed.
void change_rules(net::AwsCalls& aws, const std::string& action, const std::string& group, Fields rule) {
  rule.emplace_back("GroupId", group);
  try {
    aws.query(net::kEc2, action, std::move(rule));
  } catch (const net::AwsError& problem) {
    const auto kind = problem.facts().problem;
    if (kind != net::AwsProblem::exists && kind != net::AwsProblem::not_found) throw;
  }
}

Fields ssh_rule(const std::string& source) {
  const bool six = source.find(':') != source.npos;
  return {{"IpPermissions.1.IpProtocol", "tcp"},
          {"IpPermissions.1.FromPort", "22"},
          {"IpPermissions.1.ToPort", "22"},
          {six ? "IpPermissions.1.Ipv6Ranges.1.CidrIpv6" : "IpPermissions.1.IpRanges.1.CidrIp", source}};
}

Fields own_rule(const std::string& group) {
  return {{"IpPermissions.1.IpProtocol", "-1"}, {"IpPermissions.1.Groups.1.GroupId", group}};
}

bool needs_interface(const Spec& spec, const Account& account) {
  const bool wants_public = !spec.private_addresses;
  return spec.efa ||
         std::ranges::any_of(account.subnets, [&](const Subnet& one) { return one.gives_public_ip != wants_public; });
}

}  // namespace

Tags common_tags(const std::string& cluster, const Account& account) {
  return {{tag::kCluster, cluster}, {tag::kOwner, account.person}};
}

void set_tags(net::AwsCalls& aws, const std::vector<std::string>& resources, const Tags& tags) {
  Fields fields;
  add_list(fields, "ResourceId", resources);
  int number = 0;
  for (const auto& [key, value] : tags) {
    ++number;
    fields.emplace_back(fmt::format("Tag.{}.Key", number), key);
    fields.emplace_back(fmt::format("Tag.{}.Value", number), value);
  }
  aws.query(net::kEc2, "CreateTags", std::move(fields));
}

GroupMade make_group(net::AwsCalls& aws, const ClusterRequest& request, const Account& account) {
  Tags tags = common_tags(request.name, account);
  tags.merge(option_tags(request.options));
  const auto make = [&](const std::string& name) {
    Fields fields{{"GroupName", name},
                  {"GroupDescription", fmt::format("dtrain cluster {}", request.name)},
                  {"VpcId", account.vpc_id}};
    Tags named = tags;
    named[tag::kName] = name;
    add_tags(fields, "", 1, "security-group", named);
    const net::Element answer = aws.query(net::kEc2, "CreateSecurityGroup", std::move(fields));
    return GroupMade{{.id = answer.value("groupId"), .name = name, .vpc_id = account.vpc_id, .tags = named}, true};
  };
  const auto look = [&](const std::string& name) -> std::optional<GroupMade> {
    const auto found = aws.query_all(net::kEc2, "DescribeSecurityGroups",
                                     filtered({{"group-name", name}, {"vpc-id", account.vpc_id}}), "securityGroupInfo");
    if (found.empty() || !is_ours(tags_of(found.front()), request.name)) return std::nullopt;
    const net::Element& one = found.front();
    return GroupMade{{.id = one.value("groupId"), .name = name, .vpc_id = account.vpc_id, .tags = tags_of(one)}};
  };
  // A resource that a concurrent `up` made just now may show its tags a moment later.
  const auto find = [&](const std::string& name) {
    auto group = look(name);
    for (int looks = 1; !group && looks < kLooks; ++looks) {
      pause_for(kBetweenLooks);
      group = look(name);
    }
    return group;
  };
  return make_or_take<GroupMade>("security group", request.name, make, find);
}

void set_ssh_rule(net::AwsCalls& aws, const SecurityGroup& group, const std::string& source) {
  const bool is_open = std::ranges::find(group.ssh_sources, source) != group.ssh_sources.end();
  if (!is_open) change_rules(aws, "AuthorizeSecurityGroupIngress", group.id, ssh_rule(source));
  for (const std::string& old : group.ssh_sources) {
    if (old != source) change_rules(aws, "RevokeSecurityGroupIngress", group.id, ssh_rule(old));
  }
}

void set_own_rules(net::AwsCalls& aws, const SecurityGroup& group, bool efa) {
  if (!group.lets_own_in) change_rules(aws, "AuthorizeSecurityGroupIngress", group.id, own_rule(group.id));
  // EFA traffic passes only by a rule that names the group, whatever else is open.
  if (efa && !group.lets_own_out) change_rules(aws, "AuthorizeSecurityGroupEgress", group.id, own_rule(group.id));
}

void import_key(net::AwsCalls& aws, const ClusterRequest& request, const Account& account) {
  Fields fields{{"KeyName", account.key}, {"PublicKeyMaterial", base64(account.public_key)}};
  add_tags(fields, "", 1, "key-pair", common_tags(request.name, account));
  try {
    aws.query(net::kEc2, "ImportKeyPair", std::move(fields));
  } catch (const net::AwsError& problem) {
    // A concurrent `up` of the same user made it; the key of another user would be refused at login.
    if (problem.facts().problem != net::AwsProblem::exists) throw;
  }
}

std::string placement_group_name(const std::string& cluster) { return resource_name(cluster, 0); }

void make_placement_group(net::AwsCalls& aws, const ClusterRequest& request, const Account& account) {
  Fields fields{{"GroupName", placement_group_name(request.name)}, {"Strategy", "cluster"}};
  add_tags(fields, "", 1, "placement-group", common_tags(request.name, account));
  try {
    aws.query(net::kEc2, "CreatePlacementGroup", std::move(fields));
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::exists) throw;
  }
}

Fields instance_fields(const std::string& prefix, const ClusterRequest& request, const Account& account,
                       const SecurityGroup& group, const std::string& user_data, const std::string& subnet_id) {
  Fields fields{{"ImageId", account.image.id},
                {"UserData", base64(user_data)},
                {"InstanceInitiatedShutdownBehavior", "terminate"},
                {"MetadataOptions.HttpEndpoint", "enabled"},
                {"MetadataOptions.HttpTokens", "required"},
                {"MetadataOptions.HttpPutResponseHopLimit", "1"},
                {"MetadataOptions.InstanceMetadataTags", "enabled"},
                {"BlockDeviceMapping.1.DeviceName", account.image.root_device},
                {"BlockDeviceMapping.1.Ebs.Encrypted", "true"},
                {"BlockDeviceMapping.1.Ebs.VolumeType", "gp3"},
                {"BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true"}};
  if (const int size = std::max(request.spec.root_gb, account.image.disk_gb); size > 0) {
    fields.emplace_back("BlockDeviceMapping.1.Ebs.VolumeSize", std::to_string(size));
  }
  if (!account.key.empty()) fields.emplace_back("KeyName", account.key);
  if (request.spec.placement) fields.emplace_back("Placement.GroupName", placement_group_name(request.name));
  if (needs_interface(request.spec, account)) {
    fields.insert(fields.end(),
                  {{"NetworkInterface.1.DeviceIndex", "0"},
                   {"NetworkInterface.1.AssociatePublicIpAddress", request.spec.private_addresses ? "false" : "true"},
                   {"NetworkInterface.1.DeleteOnTermination", "true"},
                   {"NetworkInterface.1.SecurityGroupId.1", group.id}});
    if (request.spec.efa) fields.emplace_back("NetworkInterface.1.InterfaceType", "efa");
    if (!subnet_id.empty()) fields.emplace_back("NetworkInterface.1.SubnetId", subnet_id);
  } else {
    fields.emplace_back("SecurityGroupId.1", group.id);
    if (!subnet_id.empty()) fields.emplace_back("SubnetId", subnet_id);
  }
  for (auto& [name, value] : fields) name = prefix + name;
  return fields;
}

// The fields of the template, without names and tags of the template itself.
static Fields template_fields(const ClusterRequest& request, const Account& account, const TemplateContent& content) {
  const std::string data = "LaunchTemplateData.";
  Fields fields = instance_fields(data, request, account, content.group, content.user_data, {});
  fields.emplace_back(data + "InstanceType", request.spec.instance_types.front());
  const Tags tags = common_tags(request.name, account);
  Tags worker = tags;
  worker.insert({{tag::kName, fmt::format("dtrain-{}-worker", request.name)},
                 {tag::kRole, "worker"},
                 {tag::kNodeType, "Worker"},
                 {elastic_tag(request.name), ""}});
  add_tags(fields, data, 1, "instance", worker);
  add_tags(fields, data, 2, "volume", tags);
  return fields;
}

// The client token: the same content for the same group's nodes gives the same token, so a repeated call has no effect.
static std::string token_of(const TemplateContent& content, const std::string& name) {
  return sha256_hex(bytes_of(content.group.id + name + content.user_data)).substr(0, kTokenSize);
}

LaunchTemplate make_template(net::AwsCalls& aws, const ClusterRequest& request, const Account& account,
                             const TemplateContent& content) {
  const Tags tags = common_tags(request.name, account);
  Fields common = template_fields(request, account, content);
  add_tags(common, "", 1, "launch-template", tags);
  const auto make = [&](const std::string& name) {
    Fields fields = common;
    fields.emplace_back("LaunchTemplateName", name);
    fields.emplace_back("ClientToken", token_of(content, name));
    const net::Element made = aws.query(net::kEc2, "CreateLaunchTemplate", std::move(fields)).at("launchTemplate");
    return LaunchTemplate{made.value("launchTemplateId"), name, tags};
  };
  const auto find = [&](const std::string& name) -> std::optional<LaunchTemplate> {
    Fields fields;
    add_list(fields, "LaunchTemplateName", {name});
    const auto found = aws.query_all(net::kEc2, "DescribeLaunchTemplates", fields, "launchTemplates");
    if (found.empty() || !is_ours(tags_of(found.front()), request.name)) return std::nullopt;
    return LaunchTemplate{found.front().value("launchTemplateId"), name, tags_of(found.front())};
  };
  return make_or_take<LaunchTemplate>("launch template", request.name, make, find);
}

void renew_template(net::AwsCalls& aws, const ClusterRequest& request, const Account& account,
                    const TemplateContent& content, const LaunchTemplate& there) {
  Fields fields = template_fields(request, account, content);
  fields.emplace_back("LaunchTemplateId", there.id);
  fields.emplace_back("ClientToken", token_of(content, there.id));
  const net::Element made = aws.query(net::kEc2, "CreateLaunchTemplateVersion", std::move(fields));
  const std::string& version = made.at("launchTemplateVersion").value("versionNumber");
  aws.query(net::kEc2, "ModifyLaunchTemplate", {{"LaunchTemplateId", there.id}, {"SetDefaultVersion", version}});
}

}  // namespace dtrain::cluster
