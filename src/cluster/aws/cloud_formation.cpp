#include <dtrain/cluster/cloud_formation.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/admission.hpp>
#include <dtrain/cluster/plan.hpp>
#include <dtrain/cluster/rights.hpp>

#include "head_role.hpp"
#include "plan/boot.hpp"
#include "resources.hpp"
#include "rules.hpp"

namespace dtrain::cluster {
namespace {

// Placeholders in a script for values that only CloudFormation knows. They occur nowhere else in a script.
constexpr const char* kHeadAddress = "@HeadAddress@";
constexpr const char* kFileSystem = "@FileSystem@";
constexpr const char* kMountName = "@MountName@";
// Quotas of CloudFormation, which cannot be raised.
constexpr std::size_t kMostResources = 500, kMostBytes = 1'048'576;

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
  const std::pair<std::string_view, Json> known[] = {{kHeadAddress, attribute("Head", "PrivateIp")},
                                                     {kFileSystem, reference("SharedFiles")},
                                                     {kMountName, attribute("SharedFiles", "LustreMountName")}};
  const auto place = [&](const auto& one, std::size_t from) { return script.find(one.first, from); };
  Json pieces = Json::array();
  std::size_t from = 0;
  while (true) {
    const auto* const next = std::ranges::min_element(known, {}, [&](const auto& one) { return place(one, from); });
    const std::size_t at = place(*next, from);
    pieces.push_back(script.substr(from, at == script.npos ? at : at - from));
    if (at == script.npos) break;
    pieces.push_back(next->second);
    from = at + next->first.size();
  }
  return Json::object({{"Fn::Base64", Json::object({{"Fn::Join", Json::array({"", pieces})}})}});
}

// What `add`, `up` and `down` read of a cluster.
Tags group_tags(const ClusterRequest& request, const Account& account) {
  Tags tags = common_tags(request.name, account);
  tags.merge(option_tags(request.options));
  tags.insert({{tag::kAdmission, request.admission},
               {tag::kRules, kDescribed},
               {tag::kLaunches, "1"},
               {tag::kLastNode, std::to_string(request.spec.workers)}});
  return tags;
}

Json security_group(const ClusterRequest& request, const Account& account) {
  const bool six = account.ssh_source.find(':') != std::string::npos;
  const Json ssh = Json::object({{"IpProtocol", "tcp"},
                                 {"FromPort", 22},
                                 {"ToPort", 22},
                                 {six ? "CidrIpv6" : "CidrIp", account.ssh_source},
                                 {"Description", kOwnRule}});
  return resource("AWS::EC2::SecurityGroup",
                  Json::object({{"GroupDescription", fmt::format("dtrain cluster {}", request.name)},
                                {"VpcId", account.vpc_id},
                                {"SecurityGroupIngress", Json::array({ssh})},
                                {"Tags", tag_list(group_tags(request, account))}}));
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
  if (!account.kms_key.empty()) ebs["KmsKeyId"] = account.kms_key;
  return Json::array({Json::object({{"DeviceName", account.image.root_device}, {"Ebs", ebs}})});
}

// The key pair that the stack makes of the user's key, or one that exists.
Json key_name(const Account& account) { return account.public_key.empty() ? Json(account.key) : reference("Key"); }

// The zone and the subnet of all nodes.
Pool place_of(const ClusterRequest& request, const Account& account) {
  const std::vector<Pool> pools = worker_pools(request.spec, account, {});
  if (!pools.empty()) return pools.front();
  const Subnet& subnet = account.subnets.front();
  return {.zone = subnet.zone, .subnet_id = subnet.id};
}

// An interface names the subnet itself; EC2 then refuses one beside it.
Json interface(const ClusterRequest& request, const Account& account) {
  Json interface = Json::object({{"DeviceIndex", 0},
                                 {"AssociatePublicIpAddress", !request.spec.private_addresses},
                                 {"DeleteOnTermination", true},
                                 {"Groups", Json::array({attribute("Group", "GroupId")})},
                                 {"SubnetId", place_of(request, account).subnet_id}});
  if (request.spec.efa) interface["InterfaceType"] = "efa";
  return interface;
}

Json tags_for(const char* kind, const Tags& tags) {
  return Json::object({{"ResourceType", kind}, {"Tags", tag_list(tags)}});
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
       {"TagSpecifications",
        Json::array({tags_for("instance", tags), tags_for("volume", common_tags(request.name, account))})}});
  if (needs_interface(request.spec, account)) {
    data["NetworkInterfaces"] = Json::array({interface(request, account)});
  } else {
    data["SecurityGroupIds"] = Json::array({attribute("Group", "GroupId")});
  }
  if (!account.key.empty()) data["KeyName"] = key_name(account);
  if (request.spec.spot == SpotUse::only) {
    Json market = Json::object({{"MarketType", "spot"}});
    if (request.spec.max_price > 0) {
      market["SpotOptions"] = Json::object({{"MaxPrice", fmt::format("{}", request.spec.max_price)}});
    }
    data["InstanceMarketOptions"] = std::move(market);
  }
  if (account.reservation && account.reservation->type == type) {
    data["CapacityReservationSpecification"] = Json::object(
        {{"CapacityReservationTarget", Json::object({{"CapacityReservationId", account.reservation->id}})}});
  }
  if (request.spec.placement) data["Placement"] = Json::object({{"GroupName", reference("Placement")}});
  return resource("AWS::EC2::LaunchTemplate", Json::object({{"LaunchTemplateData", data}}));
}

// Image and type are repeated here, where a reader looks for them.
Json instance(const std::string& from, const ClusterRequest& request, const Account& account, const std::string& type,
              const Tags& tags) {
  const Json use =
      Json::object({{"LaunchTemplateId", reference(from)}, {"Version", attribute(from, "LatestVersionNumber")}});
  Json made = resource(
      "AWS::EC2::Instance",
      Json::object(
          {{"LaunchTemplate", use}, {"ImageId", account.image.id}, {"InstanceType", type}, {"Tags", tag_list(tags)}}));
  if (!needs_interface(request.spec, account)) {
    made["Properties"]["SubnetId"] = place_of(request, account).subnet_id;
  }
  return made;
}

Tags node_tags(const ClusterRequest& request, const Account& account, Role role, const std::string& node) {
  Tags tags = common_tags(request.name, account);
  tags.merge(name_tags(request.name, node));
  tags.insert({{tag::kRole, role == Role::head ? "head" : "worker"},
               {tag::kNodeType, role == Role::head ? "Master" : "Worker"}});
  if (role == Role::worker) tags.insert({{tag::kBase, "yes"}, {elastic_tag(request.name), ""}});
  return tags;
}

// The tags of a worker that `add` or the user starts from the template.
Tags further_worker_tags(const ClusterRequest& request, const Account& account) {
  Tags tags = common_tags(request.name, account);
  tags.insert({{tag::kRole, "worker"},
               {tag::kNodeType, "Worker"},
               {tag::kName, shown_name(request.name, "worker")},
               {elastic_tag(request.name), ""}});
  return tags;
}

Json mount_target(const Json& system, const std::string& subnet) {
  return resource("AWS::EFS::MountTarget",
                  Json::object({{"FileSystemId", system},
                                {"SubnetId", subnet},
                                {"SecurityGroups", Json::array({attribute("Group", "GroupId")})}}));
}

void add_storage(const ClusterRequest& request, const Account& account, Json& resources) {
  const Pool place = place_of(request, account);
  const SharedKind kind = shared_kind(request.spec);
  if (kind == SharedKind::new_efs) {
    resources["SharedFiles"] = resource(
        "AWS::EFS::FileSystem", Json::object({{"Encrypted", true},
                                              {"PerformanceMode", "generalPurpose"},
                                              {"FileSystemTags", tag_list(common_tags(request.name, account))}}));
    if (!account.kms_key.empty()) resources["SharedFiles"]["Properties"]["KmsKeyId"] = account.kms_key;
    resources["SharedFiles"]["DeletionPolicy"] = "Retain";
    resources["SharedFilesAddress"] = mount_target(reference("SharedFiles"), place.subnet_id);
  }
  if (kind == SharedKind::new_lustre) {
    Json properties =
        Json::object({{"FileSystemType", "LUSTRE"},
                      {"FileSystemTypeVersion", "2.15"},
                      {"StorageCapacity", lustre_gb(request.spec)},
                      {"SubnetIds", Json::array({place.subnet_id})},
                      {"SecurityGroupIds", Json::array({attribute("Group", "GroupId")})},
                      {"Tags", tag_list(common_tags(request.name, account))},
                      {"LustreConfiguration",
                       Json::object({{"DeploymentType", "PERSISTENT_2"}, {"PerUnitStorageThroughput", 125}})}});
    if (!account.kms_key.empty()) properties["KmsKeyId"] = account.kms_key;
    resources["SharedFiles"] = resource("AWS::FSx::FileSystem", std::move(properties));
    resources["SharedFiles"]["DependsOn"] = "GroupFromItself";  // FSx looks at the rules of the group
  }
  if (kind != SharedKind::given_efs || !account.file_system) return;
  const auto& there = account.file_system->mount_targets;
  if (std::ranges::none_of(there, [&](const auto& one) { return one.zone == place.zone; })) {
    resources["SharedFilesAddress"] = mount_target(account.file_system->id, place.subnet_id);
  }
}

void add_role(const ClusterRequest& request, const Account& account, Json& resources) {
  if (!wants_own_role(request.spec)) return;
  const std::string path = role_path(account.region, request.name);
  const Json rights = Json::object({{"PolicyName", "dtrain"}, {"PolicyDocument", role_rights(request, account)}});
  resources["HeadRole"] =
      resource("AWS::IAM::Role", Json::object({{"Path", path},
                                               {"AssumeRolePolicyDocument", head_trust()},
                                               {"Policies", Json::array({rights})},
                                               {"Tags", tag_list(common_tags(request.name, account))}}));
  if (const std::string& boundary = request.spec.permissions_boundary; !boundary.empty()) {
    resources["HeadRole"]["Properties"]["PermissionsBoundary"] = boundary;
  }
  resources["HeadProfile"] = resource("AWS::IAM::InstanceProfile",
                                      Json::object({{"Path", path}, {"Roles", Json::array({reference("HeadRole")})}}));
}

Json head_profile(const Spec& spec) {
  if (spec.elastic_role.empty() && !wants_own_role(spec)) return {};
  return Json::object({{"Name", wants_own_role(spec) ? reference("HeadProfile") : Json(spec.elastic_role)}});
}

void add_nodes(const ClusterRequest& request, const Account& account, Json& resources) {
  const std::string head_type = types_of(request.spec).front(), worker_type = request.spec.instance_types.front();
  std::optional<FileSystem> system = account.file_system;
  const SharedKind kind = shared_kind(request.spec);
  if (kind == SharedKind::new_efs) system = FileSystem{.id = kFileSystem};
  if (kind == SharedKind::new_lustre) system = FileSystem{.id = kFileSystem, .lustre = true, .mount_name = kMountName};
  const std::string head_script = boot_script(request, account, NodeBoot::Role::head, {}, system);
  const std::string worker_script = boot_script(request, account, NodeBoot::Role::worker, kHeadAddress, system);
  const Tags common = common_tags(request.name, account);
  resources["HeadTemplate"] = launch_template(request, account, head_type, head_script, common);
  if (const Json profile = head_profile(request.spec); !profile.is_null()) {
    resources["HeadTemplate"]["Properties"]["LaunchTemplateData"]["IamInstanceProfile"] = profile;
  }
  resources["Head"] =
      instance("HeadTemplate", request, account, head_type, node_tags(request, account, Role::head, "head"));
  const Tags further = further_worker_tags(request, account);
  resources["WorkerTemplate"] = launch_template(request, account, worker_type, worker_script, further);
  // The template's own tags, by which `add` finds it.
  resources["WorkerTemplate"]["Properties"]["TagSpecifications"] = Json::array({tags_for("launch-template", common)});
  for (int number = 1; number <= request.spec.workers; ++number) {
    resources[fmt::format("Worker{:04}", number)] =
        instance("WorkerTemplate", request, account, worker_type,
                 node_tags(request, account, Role::worker, worker_name(number)));
  }
}

}  // namespace

Json cloud_formation_template(const ClusterRequest& asked, const Account& account) {
  ClusterRequest request = asked;
  request.admission = new_admission_secret();
  // The head of a stack belongs to the stack: no other machine starts one in its place.
  if (workers_replace_head(request.spec)) {
    request.spec.replace_head_after = std::chrono::seconds(0);
    request.options["replace-head-after"] = "off";
  }
  if (request.spec.spot == SpotUse::prefer) {
    throw UsageError("setting 'spot' prefer: a CloudFormation template cannot fall back to on-demand instances",
                     "give setting 'spot' only or setting 'spot' off, or use dtrain cluster up");
  }
  if (least_workers(request.spec) < request.spec.workers) {
    throw UsageError("setting 'min-workers': CloudFormation starts all instances of a stack or none",
                     "leave setting 'min-workers' out, or use dtrain cluster up");
  }
  Json resources = Json::object();
  resources["Group"] = security_group(request, account);
  resources["GroupFromItself"] = own_rule("AWS::EC2::SecurityGroupIngress");
  if (request.spec.efa) resources["GroupToItself"] = own_rule("AWS::EC2::SecurityGroupEgress");
  if (request.spec.placement) {
    resources["Placement"] = resource("AWS::EC2::PlacementGroup", Json::object({{"Strategy", "cluster"}}));
  }
  if (!account.public_key.empty()) {
    resources["Key"] =
        resource("AWS::EC2::KeyPair", Json::object({{"KeyName", account.key},
                                                    {"PublicKeyMaterial", account.public_key},
                                                    {"Tags", tag_list(common_tags(request.name, account))}}));
  }
  add_storage(request, account, resources);
  add_role(request, account, resources);
  add_nodes(request, account, resources);
  const std::size_t count = resources.as_object().size();
  const char* address = request.spec.private_addresses ? "PrivateIp" : "PublicIp";
  Json document = Json::object(
      {{"AWSTemplateFormatVersion", "2010-09-09"},
       {"Description", fmt::format("dtrain cluster {}: a head and {} workers", request.name, request.spec.workers)},
       {"Resources", resources},
       {"Outputs", Json::object({{"HeadAddress", Json::object({{"Value", attribute("Head", address)}})}})}});
  const std::size_t bytes = document.dump().size();
  if (count > kMostResources || bytes > kMostBytes) {
    throw UsageError(fmt::format("the template would have {} resources in {} bytes, and CloudFormation takes {} in {}",
                                 count, bytes, kMostResources, kMostBytes),
                     "use fewer setting 'workers', or dtrain cluster up");
  }
  return document;
}

}  // namespace dtrain::cluster
