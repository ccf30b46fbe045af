#include "resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include <dtrain/base/base64.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/admission.hpp>

#include "ec2_fields.hpp"
#include "head_role.hpp"
#include "rules.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

// Limit of names that are tried when others have taken them.
constexpr int kMostNames = 5;
// A resource without a tag is another's after so many looks: tags may show a moment later than the resource.
constexpr int kLooksForTags = 5;
constexpr std::size_t kTokenSize = 32;

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

enum class Owner { invisible, unknown, ours, foreign };

// The owner of what carries these tags.
Owner owner_by(const Tags& tags, const std::string& cluster) {
  if (!tags.contains(tag::kCluster)) return Owner::unknown;
  return is_ours(tags, cluster) ? Owner::ours : Owner::foreign;
}

// Looks at a resource that exists according to another call, until it shows and its owner is known. Throws RemoteError
// if it does not show.
Owner owner_of(net::AwsCalls& aws, const std::string& name, const std::function<Owner()>& look) {
  Owner owner = Owner::invisible;
  int looks = 0;
  const auto patience = std::min<std::chrono::milliseconds>(kUntilVisible, aws.patience());
  look_until(patience, [&] {
    owner = look();
    return owner == Owner::ours || owner == Owner::foreign || (owner == Owner::unknown && ++looks >= kLooksForTags);
  });
  if (owner != Owner::invisible) return owner;
  throw RemoteError(
      fmt::format("AWS says that {} exists, and does not list it within {}", name, format_duration(patience)),
      "run the same command again");
}

bool says_it_exists(const net::AwsError& problem) { return problem.facts().problem == net::AwsProblem::exists; }

// Calls make() with one name after the other; where a name is taken, the resource is taken if it is ours. find() looks
// at the resource of that name and stores it.
template <typename Found, typename Make, typename Find>
Found make_or_take(net::AwsCalls& aws, const std::string& kind, const std::string& cluster, const Make& make,
                   const Find& find) {
  for (int number = 0; number < kMostNames; ++number) {
    const std::string name = resource_name(cluster, number);
    try {
      return make(name);
    } catch (const net::AwsError& problem) {
      if (!says_it_exists(problem)) throw;
    }
    Found there;
    const Owner owner = owner_of(aws, fmt::format("{} {}", kind, name), [&] { return find(name, there); });
    if (owner == Owner::ours) return there;
  }
  names_are_taken(kind, cluster);
}

std::string description_of_group(const std::string& cluster) { return fmt::format("dtrain cluster {}", cluster); }

// "ssh-ed25519 AAAA... comment" without its comment.
std::string without_comment(const std::string& key) {
  const std::vector<std::string> words = split(std::string(trim(key)), ' ');
  return words.size() < 2 ? key : words[0] + " " + words[1];
}

}  // namespace

bool needs_interface(const Spec& spec, const Account& account) {
  const bool wants_public = !spec.private_addresses;
  return spec.efa ||
         std::ranges::any_of(account.subnets, [&](const Subnet& one) { return one.gives_public_ip != wants_public; });
}

Tags common_tags(const std::string& cluster, const Account& account) {
  Tags tags{{tag::kCluster, cluster}, {tag::kOwner, tag_value(account.person)}};
  tags.insert(account.tags.begin(), account.tags.end());
  return tags;
}

std::string shown_name(const std::string& cluster, const std::string& node) {
  return fmt::format("dtrain-{}-{}", cluster, node);
}

Tags name_tags(const std::string& cluster, const std::string& node) {
  return {{tag::kNode, node}, {tag::kName, shown_name(cluster, node)}};
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
  if (request.spec.on != Service::emr) tags[tag::kAdmission] = new_admission_secret();
  tags[tag::kRules] = kDescribed;
  const std::string description = description_of_group(request.name);
  const auto make = [&](const std::string& name) {
    Fields fields{{"GroupName", name}, {"GroupDescription", description}, {"VpcId", account.vpc_id}};
    Tags named = tags;
    named[tag::kName] = name;
    add_tags(fields, "", 1, "security-group", named);
    const net::Element answer = aws.query(net::kEc2, "CreateSecurityGroup", std::move(fields));
    aws.created(answer.value("groupId"));
    return GroupMade{{.id = answer.value("groupId"), .name = name, .vpc_id = account.vpc_id, .tags = named}, true};
  };
  const auto find = [&](const std::string& name, GroupMade& there) {
    const auto found = aws.query_all(net::kEc2, "DescribeSecurityGroups",
                                     filtered({{"group-name", name}, {"vpc-id", account.vpc_id}}), "securityGroupInfo");
    if (found.empty()) return Owner::invisible;
    if (found.front().value("groupDescription") != description) return Owner::foreign;
    there.group = group_of(found.front());
    aws.created(there.group.id);  // perhaps a moment ago, by another `up`
    return owner_by(there.group.tags, request.name);
  };
  return make_or_take<GroupMade>(aws, "security group", request.name, make, find);
}

bool is_same_key(const std::string& a, const std::string& b) { return without_comment(a) == without_comment(b); }

std::vector<ImportedKey> read_key_pairs(net::AwsCalls& aws, const std::string& filter, const std::string& value) {
  Fields fields = filtered({{filter, value}});
  fields.emplace_back("IncludePublicKey", "true");
  std::vector<ImportedKey> pairs;
  for (const net::Element& one : aws.query_all(net::kEc2, "DescribeKeyPairs", fields, "keySet")) {
    pairs.push_back({one.value("keyName"), one.value("publicKey"), tags_of(one)});
  }
  return pairs;
}

std::string free_key_name(net::AwsCalls& aws, const std::string& cluster) {
  const auto taken = read_key_pairs(aws, "key-name", resource_name(cluster, 0) + "*");
  for (int number = 0; number < kMostNames; ++number) {
    std::string name = resource_name(cluster, number);
    if (std::ranges::none_of(taken, [&](const ImportedKey& one) { return one.name == name; })) return name;
  }
  names_are_taken("key pair", cluster);
}

// Where the name is taken by now, a concurrent `up` of the same user made the key pair, or it is another's: then
// nothing would let the user in.
void import_key(net::AwsCalls& aws, const ClusterRequest& request, const Account& account) {
  Fields fields{{"KeyName", account.key}, {"PublicKeyMaterial", base64(account.public_key)}};
  add_tags(fields, "", 1, "key-pair", common_tags(request.name, account));
  try {
    aws.query(net::kEc2, "ImportKeyPair", std::move(fields));
  } catch (const net::AwsError& problem) {
    if (!says_it_exists(problem)) throw;
    ImportedKey there;
    const Owner owner = owner_of(aws, "key pair " + account.key, [&] {
      const auto pairs = read_key_pairs(aws, "key-name", account.key);
      if (pairs.empty()) return Owner::invisible;
      there = pairs.front();
      return owner_by(there.tags, request.name);
    });
    if (owner != Owner::ours || !is_same_key(there.public_key, account.public_key)) {
      throw RemoteError(fmt::format("key pair {} exists and holds another key than your ~/.ssh/id_*.pub", account.key),
                        "run the same command again to use another name, or give setting 'key' NAME");
    }
  }
  aws.created(account.key);
}

std::string placement_group_name(const std::string& cluster) { return resource_name(cluster, 0); }

void make_placement_group(net::AwsCalls& aws, const ClusterRequest& request, const Account& account) {
  Fields fields{{"GroupName", placement_group_name(request.name)}, {"Strategy", "cluster"}};
  add_tags(fields, "", 1, "placement-group", common_tags(request.name, account));
  try {
    aws.query(net::kEc2, "CreatePlacementGroup", std::move(fields));
  } catch (const net::AwsError& problem) {
    if (!says_it_exists(problem)) throw;
    const std::string name = placement_group_name(request.name);
    const Owner owner = owner_of(aws, "placement group " + name, [&] {
      for (const net::Element& one :
           aws.query_all(net::kEc2, "DescribePlacementGroups", filtered({{"group-name", name}}), "placementGroupSet")) {
        if (one.value("groupName") == name) return owner_by(tags_of(one), request.name);
      }
      return Owner::invisible;
    });
    if (owner != Owner::ours) {
      throw RemoteError(fmt::format("placement group {} exists and is not of cluster {}", name, request.name),
                        "choose another name for the cluster, or leave setting 'placement' out");
    }
  }
  aws.created(placement_group_name(request.name));
}

static Fields prefixed(const std::string& prefix, Fields fields) {
  for (auto& [name, value] : fields) name = prefix + name;
  return fields;
}

Fields machine_fields(const std::string& prefix, const ClusterRequest& request, const Account& account,
                      const std::string& user_data) {
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
  if (!account.kms_key.empty()) fields.emplace_back("BlockDeviceMapping.1.Ebs.KmsKeyId", account.kms_key);
  if (!account.key.empty()) fields.emplace_back("KeyName", account.key);
  if (request.spec.placement) fields.emplace_back("Placement.GroupName", placement_group_name(request.name));
  return prefixed(prefix, std::move(fields));
}

Fields interface_fields(const std::string& prefix, const Spec& spec, const SecurityGroup& group,
                        const std::string& subnet_id) {
  Fields fields{{"NetworkInterface.1.DeviceIndex", "0"},
                {"NetworkInterface.1.AssociatePublicIpAddress", spec.private_addresses ? "false" : "true"},
                {"NetworkInterface.1.DeleteOnTermination", "true"},
                {"NetworkInterface.1.SecurityGroupId.1", group.id}};
  if (spec.efa) fields.emplace_back("NetworkInterface.1.InterfaceType", "efa");
  if (!subnet_id.empty()) fields.emplace_back("NetworkInterface.1.SubnetId", subnet_id);
  return prefixed(prefix, std::move(fields));
}

Fields instance_fields(const std::string& prefix, const ClusterRequest& request, const Account& account,
                       const SecurityGroup& group, const std::string& user_data, const std::string& subnet_id) {
  Fields fields = machine_fields(prefix, request, account, user_data);
  if (needs_interface(request.spec, account)) {
    for (auto& field : interface_fields(prefix, request.spec, group, subnet_id)) fields.push_back(std::move(field));
  } else {
    fields.emplace_back(prefix + "SecurityGroupId.1", group.id);
    if (!subnet_id.empty()) fields.emplace_back(prefix + "SubnetId", subnet_id);
  }
  return fields;
}

TemplateOrder template_of_workers(const ClusterRequest& request, const Account& account,
                                  const TemplateContent& content) {
  Fields fields = instance_fields(kTemplateData, request, account, content.group, content.user_data, {});
  fields.emplace_back(fmt::format("{}InstanceType", kTemplateData), request.spec.instance_types.front());
  if (const std::string profile = profile_of_workers(request, account); !profile.empty()) {
    fields.emplace_back(fmt::format("{}IamInstanceProfile.Name", kTemplateData), profile);
  }
  if (account.reservation) {
    fields.emplace_back(fmt::format("{}{}", kTemplateData, kReservationField), account.reservation->id);
  }
  const Tags tags = common_tags(request.name, account);
  Tags worker = tags;
  worker.insert({{tag::kName, shown_name(request.name, "worker")},
                 {tag::kRole, "worker"},
                 {tag::kNodeType, "Worker"},
                 {elastic_tag(request.name), ""}});
  add_tags(fields, kTemplateData, 1, "instance", worker);
  add_tags(fields, kTemplateData, 2, "volume", tags);
  return {request.name, request.name, tags, std::move(fields), content.group.id + content.user_data};
}

TemplateOrder template_of_head(const ClusterRequest& request, const Account& account, const SecurityGroup& group,
                               const std::string& user_data, const Node& head) {
  Fields fields = machine_fields(kTemplateData, request, account, user_data);
  for (auto& field : interface_fields(kTemplateData, request.spec, group, head.subnet_id)) {
    fields.push_back(std::move(field));
  }
  const auto give = [&](const char* name, const std::string& value) {
    fields.emplace_back(fmt::format("{}{}", kTemplateData, name), value);
  };
  give("NetworkInterface.1.PrivateIpAddress", head.private_ip);
  give("InstanceType", head.type);
  give("IamInstanceProfile.Name", profile_of_head(request, account));
  if (account.reservation && account.reservation->type == head.type) give(kReservationField, account.reservation->id);
  if (request.spec.spot == SpotUse::only) {
    give("InstanceMarketOptions.MarketType", "spot");
    if (request.spec.max_price > 0) {
      give("InstanceMarketOptions.SpotOptions.MaxPrice", fmt::format("{}", request.spec.max_price));
    }
  }
  Tags tags = common_tags(request.name, account);
  tags[tag::kRole] = "head";
  return {request.name, request.name + "-head", std::move(tags), std::move(fields),
          group.id + user_data + head.subnet_id + head.private_ip + head.type};
}

// The client token: the same content under the same name gives the same token, so a repeated call has no effect.
static std::string token_of(const TemplateOrder& order, const std::string& name) {
  return sha256_hex(bytes_of(name + order.distinction)).substr(0, kTokenSize);
}

LaunchTemplate make_template(net::AwsCalls& aws, const TemplateOrder& order) {
  Fields common = order.data;
  add_tags(common, "", 1, "launch-template", order.tags);
  const auto make = [&](const std::string& name) {
    Fields fields = common;
    fields.emplace_back("LaunchTemplateName", name);
    fields.emplace_back("ClientToken", token_of(order, name));
    const net::Element made = aws.query(net::kEc2, "CreateLaunchTemplate", std::move(fields)).at("launchTemplate");
    aws.created(made.value("launchTemplateId"));
    return LaunchTemplate{.id = made.value("launchTemplateId"), .name = name, .tags = order.tags};
  };
  const auto find = [&](const std::string& name, LaunchTemplate& there) {
    const auto found = aws.query_all(net::kEc2, "DescribeLaunchTemplates", filtered({{"launch-template-name", name}}),
                                     "launchTemplates");
    if (found.empty()) return Owner::invisible;
    there = {.id = found.front().value("launchTemplateId"), .name = name, .tags = tags_of(found.front())};
    aws.created(there.id);  // perhaps a moment ago, by another `up`
    return owner_by(there.tags, order.cluster);
  };
  return make_or_take<LaunchTemplate>(aws, "launch template", order.stem, make, find);
}

static std::string default_version(net::AwsCalls& aws, const LaunchTemplate& there) {
  const auto found =
      aws.query_all(net::kEc2, "DescribeLaunchTemplates", {{"LaunchTemplateId.1", there.id}}, "launchTemplates");
  if (!found.empty()) return found.front().value("defaultVersionNumber");
  throw RemoteError(fmt::format("launch template {} is not there", there.id), "run the same command again");
}

// EC2 answers a repeated token with the version that it made first. So the token has the number of the default version,
// which is another one after each renewal. The source is "$Default", which EC2 never takes for an earlier one.
LaunchTemplate with_reservation(net::AwsCalls& aws, const LaunchTemplate& there, const std::string& reservation) {
  const std::string token =
      sha256_hex(bytes_of(fmt::format("{} {} {}", there.id, default_version(aws, there), reservation)));
  const net::Element made = aws.query(net::kEc2, "CreateLaunchTemplateVersion",
                                      {{"LaunchTemplateId", there.id},
                                       {"SourceVersion", there.version},
                                       {fmt::format("{}{}", kTemplateData, kReservationField), reservation},
                                       {"ClientToken", token.substr(0, kTokenSize)}});
  LaunchTemplate other = there;
  other.version = made.at("launchTemplateVersion").value("versionNumber");
  return other;
}

void renew_template(net::AwsCalls& aws, const TemplateOrder& order, const LaunchTemplate& there) {
  Fields fields = order.data;
  fields.emplace_back("LaunchTemplateId", there.id);
  fields.emplace_back("ClientToken", token_of(order, there.id));
  const net::Element made = aws.query(net::kEc2, "CreateLaunchTemplateVersion", std::move(fields));
  const std::string& version = made.at("launchTemplateVersion").value("versionNumber");
  aws.query(net::kEc2, "ModifyLaunchTemplate", {{"LaunchTemplateId", there.id}, {"SetDefaultVersion", version}});
}

}  // namespace dtrain::cluster
