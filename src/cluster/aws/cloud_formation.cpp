#include <dtrain/cluster/cloud_formation.hpp>

#include <fmt/format.h>

#include "head_role.hpp"
#include "plan/boot.hpp"
#include "resources.hpp"

namespace dtrain::cluster {
namespace {

// Placeholders in a script for values that only CloudFormation knows. They occur nowhere else in a script.
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

// The script in pieces, with references in place of the placeholders.
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

Json security_group(const ClusterRequest& request, const Account& account) {
  const bool six = account.ssh_source.find(':') != std::string::npos;
  const Json ssh = Json::object(
      {{"IpProtocol", "tcp"}, {"FromPort", 22}, {"ToPort", 22}, {six ? "CidrIpv6" : "CidrIp", account.ssh_source}});
  return resource("AWS::EC2::SecurityGroup",
                  Json::object({{"GroupDescription", fmt::format("dtrain cluster {}", request.name)},
                                {"VpcId", account.vpc_id},
                                {"SecurityGroupIngress", Json::array({ssh})},
                                {"Tags", tag_list(common_tags(request.name, account))}}));
}

Json own_rule(const char* type) {
  return resource(type, Json::object({{"GroupId", attribute("Group", "GroupId")},
                                      {"IpProtocol", "-1"},
                                      {std::string_view(type).ends_with("Ingress") ? "SourceSecurityGroupId"
                                                                                   : "DestinationSecurityGroupId",
                                       attribute("Group", "GroupId")}}));
}

Json disk(const ClusterRequest& request, const Account& account) {
  Json ebs = Json::object({{"Encrypted", true}, {"VolumeType", "gp3"}, {"DeleteOnTermination", true}});
  if (const int size = std::max(request.spec.root_gb, account.image.disk_gb); size > 0) ebs["VolumeSize"] = size;
  return Json::array({Json::object({{"DeviceName", account.image.root_device}, {"Ebs", ebs}})});
}

// Metadata options exist only in a launch template, so the head has one too.
Json launch_template(const ClusterRequest& request, const Account& account, const std::string& type,
                     const std::string& script, const Tags& tags) {
  Json data = Json::object(
      {{"ImageId", account.image.id},
       {"InstanceType", type},
       {"UserData", joined(script)},
       {"InstanceInitiatedShutdownBehavior", "terminate"},
       {"MetadataOptions", Json::object({{"HttpEndpoint", "enabled"},
                                         {"HttpTokens", "required"},
                                         {"HttpPutResponseHopLimit", 1},
                                         {"InstanceMetadataTags", "enabled"}})},
       {"BlockDeviceMappings", disk(request, account)},
       {"SecurityGroupIds", Json::array({attribute("Group", "GroupId")})},
       {"TagSpecifications", Json::array({Json::object({{"ResourceType", "instance"}, {"Tags", tag_list(tags)}})})}});
  if (!account.key.empty()) data["KeyName"] = account.key;
  if (request.spec.placement) data["Placement"] = Json::object({{"GroupName", reference("Placement")}});
  return resource("AWS::EC2::LaunchTemplate", Json::object({{"LaunchTemplateData", data}}));
}

// Image and type are repeated here, where a reader looks for them.
Json instance(const std::string& from, const Account& account, const std::string& type, const Tags& tags) {
  const Json use =
      Json::object({{"LaunchTemplateId", reference(from)}, {"Version", attribute(from, "LatestVersionNumber")}});
  return resource("AWS::EC2::Instance", Json::object({{"LaunchTemplate", use},
                                                      {"ImageId", account.image.id},
                                                      {"InstanceType", type},
                                                      {"SubnetId", account.subnets.front().id},
                                                      {"Tags", tag_list(tags)}}));
}

Tags node_tags(const ClusterRequest& request, const Account& account, Role role, const std::string& node) {
  Tags tags = common_tags(request.name, account);
  tags.insert({{tag::kRole, role == Role::head ? "head" : "worker"},
               {tag::kNodeType, role == Role::head ? "Master" : "Worker"},
               {tag::kNode, node},
               {tag::kName, fmt::format("dtrain-{}-{}", request.name, node)}});
  if (role == Role::worker) tags[tag::kBase] = "yes";
  return tags;
}

void add_storage(const ClusterRequest& request, const Account& account, const Subnet& subnet, Json& resources) {
  const SharedKind kind = shared_kind(request.spec);
  if (kind == SharedKind::new_efs) {
    resources["SharedFiles"] = resource(
        "AWS::EFS::FileSystem", Json::object({{"Encrypted", true},
                                              {"PerformanceMode", "generalPurpose"},
                                              {"FileSystemTags", tag_list(common_tags(request.name, account))}}));
    resources["SharedFiles"]["DeletionPolicy"] = "Retain";
    resources["SharedFilesAddress"] = resource(
        "AWS::EFS::MountTarget", Json::object({{"FileSystemId", reference("SharedFiles")},
                                               {"SubnetId", subnet.id},
                                               {"SecurityGroups", Json::array({attribute("Group", "GroupId")})}}));
  }
}

void add_role(const ClusterRequest& request, const Account& account, Json& resources) {
  if (!wants_own_role(request.spec)) return;
  const std::string path = role_path(account.region, request.name);
  const Json rights = Json::object({{"PolicyName", "dtrain"}, {"PolicyDocument", role_rights(request.name, account)}});
  resources["HeadRole"] =
      resource("AWS::IAM::Role", Json::object({{"Path", path},
                                               {"AssumeRolePolicyDocument", role_trust()},
                                               {"Policies", Json::array({rights})},
                                               {"Tags", tag_list(common_tags(request.name, account))}}));
  resources["HeadProfile"] = resource("AWS::IAM::InstanceProfile",
                                      Json::object({{"Path", path}, {"Roles", Json::array({reference("HeadRole")})}}));
}

Json head_profile(const Spec& spec) {
  if (spec.elastic_role.empty()) return {};
  return Json::object({{"Name", wants_own_role(spec) ? reference("HeadProfile") : Json(spec.elastic_role)}});
}

void add_nodes(const ClusterRequest& request, const Account& account, Json& resources) {
  const std::string head_type = types_of(request.spec).front(), worker_type = request.spec.instance_types.front();
  std::optional<FileSystem> system = account.file_system;
  if (shared_kind(request.spec) == SharedKind::new_efs) system = FileSystem{.id = kFileSystem};
  const std::string head_script = boot_script(request, account, NodeBoot::Role::head, {}, system);
  const std::string worker_script = boot_script(request, account, NodeBoot::Role::worker, kHeadAddress, system);
  const Tags common = common_tags(request.name, account);
  resources["HeadTemplate"] = launch_template(request, account, head_type, head_script, common);
  if (const Json profile = head_profile(request.spec); !profile.is_null()) {
    resources["HeadTemplate"]["Properties"]["LaunchTemplateData"]["IamInstanceProfile"] = profile;
  }
  resources["Head"] = instance("HeadTemplate", account, head_type, node_tags(request, account, Role::head, "head"));
  resources["WorkerTemplate"] = launch_template(request, account, worker_type, worker_script, common);
  for (int number = 1; number <= request.spec.workers; ++number) {
    resources[fmt::format("Worker{:04}", number)] = instance(
        "WorkerTemplate", account, worker_type, node_tags(request, account, Role::worker, worker_name(number)));
  }
}

}  // namespace

Json cloud_formation_template(const ClusterRequest& request, const Account& account) {
  const Subnet& subnet = account.subnets.front();
  Json resources = Json::object();
  resources["Group"] = security_group(request, account);
  resources["GroupFromItself"] = own_rule("AWS::EC2::SecurityGroupIngress");
  if (request.spec.efa) resources["GroupToItself"] = own_rule("AWS::EC2::SecurityGroupEgress");
  if (request.spec.placement) {
    resources["Placement"] = resource("AWS::EC2::PlacementGroup", Json::object({{"Strategy", "cluster"}}));
  }
  add_storage(request, account, subnet, resources);
  add_role(request, account, resources);
  add_nodes(request, account, resources);
  return Json::object(
      {{"AWSTemplateFormatVersion", "2010-09-09"},
       {"Description", fmt::format("dtrain cluster {}: a head and {} workers", request.name, request.spec.workers)},
       {"Resources", resources},
       {"Outputs", Json::object({{"HeadAddress", Json::object({{"Value", attribute("Head", "PublicIp")}})}})}});
}

}  // namespace dtrain::cluster
