#include <dtrain/cluster/cloud_formation.hpp>

#include <fmt/format.h>

#include "head_role.hpp"
#include "plan/boot.hpp"
#include "resources.hpp"

namespace dtrain::cluster {
namespace {

// Stand in a script for what CloudFormation knows only later. No script holds them otherwise.
constexpr const char* kHeadAddress = "@HeadAddress@";
constexpr const char* kFileSystem = "@FileSystem@";

Json reference(const std::string& name) { return Json::object({{"Ref", name}}); }
Json attribute(const std::string& resource, const std::string& name) {
  return Json::object({{"Fn::GetAtt", Json::array({resource, name})}});
}

Json resource(const std::string& type, Json properties) {
  return Json::object({{"Type", type}, {"Properties", std::move(properties)}});
}

Json tag_list(const Tags& tags) {
  Json list = Json::array();
  for (const auto& [key, value] : tags) list.push_back(Json::object({{"Key", key}, {"Value", value}}));
  return list;
}

// The script in pieces, with references where the marks were.
Json joined(const std::string& script) {
  Json pieces = Json::array();
  std::size_t from = 0;
  while (true) {
    const std::size_t head = script.find(kHeadAddress, from), system = script.find(kFileSystem, from);
    const std::size_t next = std::min(head, system);
    pieces.push_back(script.substr(from, next == script.npos ? next : next - from));
    if (next == script.npos) break;
    const bool is_head = next == head;
    pieces.push_back(is_head ? attribute("Head", "PrivateIp") : reference("SharedFiles"));
    from = next + std::string_view(is_head ? kHeadAddress : kFileSystem).size();
  }
  return Json::object({{"Fn::Base64", Json::object({{"Fn::Join", Json::array({"", pieces})}})}});
}

Json security_group(const Wish& wish, const Account& account) {
  const bool six = account.ssh_source.find(':') != std::string::npos;
  const Json ssh = Json::object(
      {{"IpProtocol", "tcp"}, {"FromPort", 22}, {"ToPort", 22}, {six ? "CidrIpv6" : "CidrIp", account.ssh_source}});
  return resource("AWS::EC2::SecurityGroup",
                  Json::object({{"GroupDescription", fmt::format("dtrain cluster {}", wish.name)},
                                {"VpcId", account.vpc_id},
                                {"SecurityGroupIngress", Json::array({ssh})},
                                {"Tags", tag_list(common_tags(wish.name, account))}}));
}

Json own_rule(const char* type) {
  return resource(type, Json::object({{"GroupId", attribute("Group", "GroupId")},
                                      {"IpProtocol", "-1"},
                                      {std::string_view(type).ends_with("Ingress") ? "SourceSecurityGroupId"
                                                                                   : "DestinationSecurityGroupId",
                                       attribute("Group", "GroupId")}}));
}

Json disk(const Wish& wish, const Account& account) {
  Json ebs = Json::object({{"Encrypted", true}, {"VolumeType", "gp3"}, {"DeleteOnTermination", true}});
  if (const int size = std::max(wish.spec.root_gb, account.image.disk_gb); size > 0) ebs["VolumeSize"] = size;
  return Json::array({Json::object({{"DeviceName", account.image.root_device}, {"Ebs", ebs}})});
}

// Metadata options can stand only in a launch template, so the head has one too.
Json launch_template(const Wish& wish, const Account& account, const std::string& type, const std::string& script,
                     const Tags& tags) {
  Json data = Json::object(
      {{"ImageId", account.image.id},
       {"InstanceType", type},
       {"UserData", joined(script)},
       {"InstanceInitiatedShutdownBehavior", "terminate"},
       {"MetadataOptions", Json::object({{"HttpEndpoint", "enabled"},
                                         {"HttpTokens", "required"},
                                         {"HttpPutResponseHopLimit", 1},
                                         {"InstanceMetadataTags", "enabled"}})},
       {"BlockDeviceMappings", disk(wish, account)},
       {"SecurityGroupIds", Json::array({attribute("Group", "GroupId")})},
       {"TagSpecifications", Json::array({Json::object({{"ResourceType", "instance"}, {"Tags", tag_list(tags)}})})}});
  if (!account.key.empty()) data["KeyName"] = account.key;
  if (wish.spec.placement) data["Placement"] = Json::object({{"GroupName", reference("Placement")}});
  return resource("AWS::EC2::LaunchTemplate", Json::object({{"LaunchTemplateData", data}}));
}

// Image and type stand here too, where a reader looks for them.
Json instance(const std::string& from, const Account& account, const std::string& type, const Tags& tags) {
  const Json use =
      Json::object({{"LaunchTemplateId", reference(from)}, {"Version", attribute(from, "LatestVersionNumber")}});
  return resource("AWS::EC2::Instance", Json::object({{"LaunchTemplate", use},
                                                      {"ImageId", account.image.id},
                                                      {"InstanceType", type},
                                                      {"SubnetId", account.subnets.front().id},
                                                      {"Tags", tag_list(tags)}}));
}

Tags node_tags(const Wish& wish, const Account& account, Role role, const std::string& node) {
  Tags tags = common_tags(wish.name, account);
  tags.insert({{tag::kRole, role == Role::head ? "head" : "worker"},
               {tag::kNodeType, role == Role::head ? "Master" : "Worker"},
               {tag::kNode, node},
               {tag::kName, fmt::format("dtrain-{}-{}", wish.name, node)}});
  if (role == Role::worker) tags[tag::kBase] = "yes";
  return tags;
}

void add_storage(const Wish& wish, const Account& account, const Subnet& subnet, Json& resources) {
  const SharedKind kind = shared_kind(wish.spec);
  if (kind == SharedKind::new_efs) {
    resources["SharedFiles"] =
        resource("AWS::EFS::FileSystem", Json::object({{"Encrypted", true},
                                                       {"PerformanceMode", "generalPurpose"},
                                                       {"FileSystemTags", tag_list(common_tags(wish.name, account))}}));
    resources["SharedFiles"]["DeletionPolicy"] = "Retain";
    resources["SharedFilesAddress"] = resource(
        "AWS::EFS::MountTarget", Json::object({{"FileSystemId", reference("SharedFiles")},
                                               {"SubnetId", subnet.id},
                                               {"SecurityGroups", Json::array({attribute("Group", "GroupId")})}}));
  }
}

void add_role(const Wish& wish, const Account& account, Json& resources) {
  if (!wants_own_role(wish.spec)) return;
  const std::string path = role_path(account.region, wish.name);
  const Json rights = Json::object({{"PolicyName", "dtrain"}, {"PolicyDocument", role_rights(wish.name, account)}});
  resources["HeadRole"] =
      resource("AWS::IAM::Role", Json::object({{"Path", path},
                                               {"AssumeRolePolicyDocument", role_trust()},
                                               {"Policies", Json::array({rights})},
                                               {"Tags", tag_list(common_tags(wish.name, account))}}));
  resources["HeadProfile"] = resource("AWS::IAM::InstanceProfile",
                                      Json::object({{"Path", path}, {"Roles", Json::array({reference("HeadRole")})}}));
}

Json head_profile(const Spec& spec) {
  if (spec.elastic_role.empty()) return {};
  return Json::object({{"Name", wants_own_role(spec) ? reference("HeadProfile") : Json(spec.elastic_role)}});
}

void add_nodes(const Wish& wish, const Account& account, Json& resources) {
  const std::string head_type = types_of(wish.spec).front(), worker_type = wish.spec.instance_types.front();
  std::optional<FileSystem> system = account.file_system;
  if (shared_kind(wish.spec) == SharedKind::new_efs) system = FileSystem{.id = kFileSystem};
  const std::string head_script = boot_script(wish, account, NodeBoot::Role::head, {}, system);
  const std::string worker_script = boot_script(wish, account, NodeBoot::Role::worker, kHeadAddress, system);
  const Tags common = common_tags(wish.name, account);
  resources["HeadTemplate"] = launch_template(wish, account, head_type, head_script, common);
  if (const Json profile = head_profile(wish.spec); !profile.is_null()) {
    resources["HeadTemplate"]["Properties"]["LaunchTemplateData"]["IamInstanceProfile"] = profile;
  }
  resources["Head"] = instance("HeadTemplate", account, head_type, node_tags(wish, account, Role::head, "head"));
  resources["WorkerTemplate"] = launch_template(wish, account, worker_type, worker_script, common);
  for (int number = 1; number <= wish.spec.workers; ++number) {
    resources[fmt::format("Worker{:04}", number)] =
        instance("WorkerTemplate", account, worker_type, node_tags(wish, account, Role::worker, worker_name(number)));
  }
}

}  // namespace

Json cloud_formation_template(const Wish& wish, const Account& account) {
  const Subnet& subnet = account.subnets.front();
  Json resources = Json::object();
  resources["Group"] = security_group(wish, account);
  resources["GroupFromItself"] = own_rule("AWS::EC2::SecurityGroupIngress");
  if (wish.spec.efa) resources["GroupToItself"] = own_rule("AWS::EC2::SecurityGroupEgress");
  if (wish.spec.placement) {
    resources["Placement"] = resource("AWS::EC2::PlacementGroup", Json::object({{"Strategy", "cluster"}}));
  }
  add_storage(wish, account, subnet, resources);
  add_role(wish, account, resources);
  add_nodes(wish, account, resources);
  return Json::object(
      {{"AWSTemplateFormatVersion", "2010-09-09"},
       {"Description", fmt::format("dtrain cluster {}: a head and {} workers", wish.name, wish.spec.workers)},
       {"Resources", resources},
       {"Outputs", Json::object({{"HeadAddress", Json::object({{"Value", attribute("Head", "PublicIp")}})}})}});
}

}  // namespace dtrain::cluster
