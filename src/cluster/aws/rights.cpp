#include <dtrain/cluster/rights.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/budget.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/tagged_prices.hpp>
#include <dtrain/cluster/wish.hpp>
#include <dtrain/net/aws.hpp>

#include "head_role.hpp"

namespace dtrain::cluster {
namespace {

using Names = std::vector<std::string>;

Json one_or_all(const Names& names) { return names.size() == 1 ? Json(names.front()) : json_texts(names); }

// The conditions of a statement: operator, key, values.
class Conditions {
 public:
  Conditions& add(const std::string& comparison, const std::string& key, const Names& values) {
    if (!all_.find(comparison)) all_[comparison] = Json::object();
    all_[comparison][key] = comparison.starts_with("For") ? json_texts(values) : one_or_all(values);
    return *this;
  }
  bool empty() const { return all_.as_object().empty(); }
  const Json& json() const { return all_; }

 private:
  Json all_ = Json::object();
};

// An action on resources of AWS, under conditions.
Json allow(const char* id, const Names& actions, const Names& resources, const Conditions& conditions) {
  Json statement = Json::object({{"Sid", id}, {"Effect", "Allow"}, {"Action", one_or_all(actions)}});
  statement["Resource"] = one_or_all(resources);
  if (!conditions.empty()) statement["Condition"] = conditions.json();
  return statement;
}

Json policy(Json statements) { return Json::object({{"Version", "2012-10-17"}, {"Statement", std::move(statements)}}); }

std::string partition_in(const RightsScope& scope) {
  return scope.partition.empty() ? net::aws_partition(scope.region) : scope.partition;
}

std::string or_any(const std::string& name) { return name.empty() ? "*" : name; }

// ARNs and conditions in this scope.
class Narrowing {
 public:
  explicit Narrowing(const RightsScope& scope) : scope_(scope) {}

  // Images and snapshots are named without an account, those of the account too.
  Names of_ec2(const Names& kinds) const {
    Names arns;
    for (const std::string& kind : kinds) {
      const std::string account = kind == "image" || kind == "snapshot" ? "" : or_any(scope_.account);
      arns.push_back(fmt::format("arn:{}:ec2:{}:{}:{}/*", partition_in(scope_), or_any(scope_.region), account, kind));
    }
    return arns;
  }
  // AWS's own public parameters belong to no account.
  std::string public_parameters() const {
    return fmt::format("arn:{}:ssm:{}::parameter/aws/service/*", partition_in(scope_), or_any(scope_.region));
  }
  // What `up` makes in IAM is below this path (role_path()).
  std::string in_iam(const char* kind) const {
    return fmt::format("arn:{}:iam::{}:{}/dtrain/{}/{}/*", partition_in(scope_), or_any(scope_.account), kind,
                       or_any(scope_.region), or_any(scope_.cluster));
  }
  // The roles that `up` makes.
  std::string role_of_head() const {
    return role(own_path() + role_name(or_any(scope_.region), or_any(scope_.cluster)));
  }
  std::string role_of_workers() const {
    return role(own_path() + worker_role_name(or_any(scope_.region), or_any(scope_.cluster)));
  }
  std::string role(const std::string& name) const {
    return fmt::format("arn:{}:iam::{}:role/{}", partition_in(scope_), or_any(scope_.account), name);
  }
  std::string bucket(const std::string& name, const char* objects) const {
    return fmt::format("arn:{}:s3:::{}{}", partition_in(scope_), name, objects);
  }

  // In the region, where one was chosen. AWS does not know the resources of such calls.
  Conditions here() const {
    Conditions conditions;
    if (!scope_.region.empty()) conditions.add("StringEquals", "aws:RequestedRegion", {scope_.region});
    return conditions;
  }
  // A resource that exists and belongs to the cluster; one that the call makes for it.
  Conditions owned() const { return tagged("aws:ResourceTag/"); }
  Conditions made() const { return tagged("aws:RequestTag/"); }

  // By a launch template, and with nothing instead of what it names.
  Conditions by_template(Conditions conditions) const {
    return conditions.add("ArnLike", "ec2:LaunchTemplate", of_ec2({"launch-template"}))
        .add("Bool", "ec2:IsLaunchTemplateResource", {"true"});
  }

 private:
  // role_path() begins with a slash, which an ARN has already.
  std::string own_path() const { return role_path(or_any(scope_.region), or_any(scope_.cluster)).substr(1); }
  Conditions tagged(const std::string& key) const {
    return Conditions().add(scope_.cluster.empty() ? "StringLike" : "StringEquals", key + tag::kCluster,
                            {or_any(scope_.cluster)});
  }

  const RightsScope& scope_;
};

// AWS takes no narrower resource for calls that read. EFS asks for the last two beside its own calls.
Json reads(const Narrowing& narrow) {
  return allow("Read",
               {"ec2:DescribeCapacityReservations",
                "ec2:DescribeImages",
                "ec2:DescribeInstanceStatus",
                "ec2:DescribeInstanceTypeOfferings",
                "ec2:DescribeInstanceTypes",
                "ec2:DescribeInstances",
                "ec2:DescribeKeyPairs",
                "ec2:DescribeLaunchTemplates",
                "ec2:DescribePlacementGroups",
                "ec2:DescribeRegions",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSpotPriceHistory",
                "ec2:DescribeSubnets",
                "ec2:DescribeTags",
                "ec2:DescribeVolumes",
                "ec2:DescribeVpcs",
                "elasticfilesystem:DescribeFileSystems",
                "elasticfilesystem:DescribeMountTargetSecurityGroups",
                "elasticfilesystem:DescribeMountTargets",
                "fsx:DescribeFileSystems",
                "elasticmapreduce:DescribeCluster",
                "elasticmapreduce:ListClusters",
                "elasticmapreduce:ListInstanceGroups",
                "elasticmapreduce:ListInstances",
                "servicequotas:GetServiceQuota",
                "ec2:DescribeNetworkInterfaceAttribute",
                "ec2:DescribeNetworkInterfaces"},
               {"*"}, narrow.here());
}

// What read_fleet() calls.
Json read_of_fleet(const Narrowing& narrow) {
  return allow("Read", {"ec2:DescribeInstances", "ec2:DescribeLaunchTemplates", "ec2:DescribeSecurityGroups"}, {"*"},
               narrow.here());
}

std::string of_resource(const char* key) { return std::string("aws:ResourceTag/") + key; }

// What a machine is started with, beside the instance and its disks.
void add_parts_of_machines(const Narrowing& narrow, Json& statements) {
  statements.push_back(allow("StartWithOwn", {"ec2:RunInstances"}, narrow.of_ec2({"launch-template", "security-group"}),
                             narrow.owned()));
  Names others = narrow.of_ec2(
      {"capacity-reservation", "image", "key-pair", "network-interface", "placement-group", "snapshot", "subnet"});
  statements.push_back(allow("StartWith", {"ec2:RunInstances"}, others, {}));
  // A fleet starts its machines by RunInstances, which the other statements narrow.
  statements.push_back(allow("StartFleets", {"ec2:CreateFleet"}, {"*"}, narrow.here()));
}

void add_machines(const Narrowing& narrow, Json& statements) {
  statements.push_back(
      allow("StartMachines", {"ec2:RunInstances"}, narrow.of_ec2({"instance", "volume"}), narrow.made()));
  add_parts_of_machines(narrow, statements);
}

Json tags_of_machines(const Narrowing& narrow) {
  return allow("TagMade", {"ec2:CreateTags"}, narrow.of_ec2({"*"}),
               Conditions().add("StringEquals", "ec2:CreateAction", {"CreateFleet", "RunInstances"}));
}

Json end_workers(const Narrowing& narrow) {
  return allow("EndWorkers", {"ec2:TerminateInstances"}, narrow.of_ec2({"instance"}),
               narrow.owned().add("StringEquals", of_resource(tag::kRole), {"worker"}));
}

// Roles are given only to machines of EC2, whose name ends with ".cn" in China.
Json giving(const char* id, const std::string& role) {
  return allow(id, {"iam:PassRole"}, {role},
               Conditions().add("StringLike", "iam:PassedToService", {"ec2.amazonaws.com*"}));
}

// What a healer calls that does not start heads: it makes nothing but workers, by the cluster's own launch template,
// which may give them their role. Every program on the head can use these rights, so they reach neither the head itself
// nor the tags that say what the cluster is. That a launch template is used is no condition: a program that uses one
// may give the machine other user data.
void add_healing(const Narrowing& narrow, Json& statements) {
  const Names instances = narrow.of_ec2({"instance"});
  statements.push_back(reads(narrow));
  statements.push_back(allow("ReadImages", {"ssm:GetParameter"}, {narrow.public_parameters()}, {}));
  statements.push_back(
      allow("StartWorkers", {"ec2:RunInstances"}, instances,
            narrow.made().add("StringEquals", std::string("aws:RequestTag/") + tag::kRole, {"worker"})));
  statements.push_back(allow("StartWithDisks", {"ec2:RunInstances"}, narrow.of_ec2({"volume"}), narrow.made()));
  add_parts_of_machines(narrow, statements);
  statements.push_back(tags_of_machines(narrow));
  statements.push_back(
      allow("TagWorkers", {"ec2:CreateTags"}, instances,
            narrow.owned()
                .add("StringEquals", of_resource(tag::kRole), {"worker"})
                .add("ForAllValues:StringEquals", "aws:TagKeys",
                     {tag::kInterrupted, tag::kName, tag::kNode, tag::kLeft, tag::kReplaced, tag::kStatus})));
  statements.push_back(allow("TellWhatWasDone", {"ec2:CreateTags"}, narrow.of_ec2({"security-group"}),
                             narrow.owned().add("ForAllValues:StringLike", "aws:TagKeys",
                                                {std::string(tag::kEvent) + "*", tag::kHealer, tag::kLastNode,
                                                 tag::kLaunches, tag::kPrices, tag::kSpent, tag::kWish})));
  statements.push_back(end_workers(narrow));
  statements.push_back(allow("ReadRoles", {"iam:GetInstanceProfile", "iam:ListInstanceProfiles"}, {"*"}, {}));
  statements.push_back(giving("GiveRoleToWorkers", narrow.role_of_workers()));
}

void add_resources(const Narrowing& narrow, Json& statements) {
  statements.push_back(allow("Make",
                             {"ec2:CreateLaunchTemplate", "ec2:CreatePlacementGroup", "ec2:CreateSecurityGroup",
                              "ec2:ImportKeyPair", "elasticfilesystem:CreateFileSystem", "fsx:CreateFileSystem",
                              "fsx:TagResource", "elasticmapreduce:AddTags", "elasticmapreduce:RunJobFlow"},
                             {"*"}, narrow.made()));
  statements.push_back(allow("MakeInNetwork", {"ec2:CreateSecurityGroup"}, narrow.of_ec2({"vpc"}), {}));
  statements.push_back(allow("TagMade", {"ec2:CreateTags"}, narrow.of_ec2({"*"}),
                             Conditions().add("StringEquals", "ec2:CreateAction",
                                              {"CreateFleet", "CreateLaunchTemplate", "CreatePlacementGroup",
                                               "CreateSecurityGroup", "ImportKeyPair", "RunInstances"})));
  statements.push_back(allow("TagFileSystems", {"elasticfilesystem:TagResource"}, {"*"},
                             Conditions().add("StringEquals", "elasticfilesystem:CreateAction", {"CreateFileSystem"})));
  statements.push_back(
      allow("ChangeOwn",
            {"ec2:AuthorizeSecurityGroupEgress", "ec2:AuthorizeSecurityGroupIngress", "ec2:CreateLaunchTemplateVersion",
             "ec2:CreateTags", "ec2:DeleteKeyPair", "ec2:DeleteLaunchTemplate", "ec2:DeletePlacementGroup",
             "ec2:DeleteSecurityGroup", "ec2:DeleteTags", "ec2:GetConsoleOutput", "ec2:ModifyLaunchTemplate",
             "ec2:RevokeSecurityGroupIngress", "ec2:StartInstances", "ec2:StopInstances", "ec2:TerminateInstances",
             "elasticfilesystem:DeleteFileSystem", "fsx:DeleteFileSystem", "elasticmapreduce:ModifyInstanceGroups",
             "elasticmapreduce:TerminateJobFlows"},
            {"*"}, narrow.owned()));
  // `--shared efs:ID` names a file system of the user, without dtrain's tags. EFS makes the network interfaces.
  statements.push_back(allow("Mount",
                             {"elasticfilesystem:CreateMountTarget", "elasticfilesystem:DeleteMountTarget",
                              "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface"},
                             {"*"}, narrow.here()));
}

// EBS and EFS use the key for who calls them, and make grants by which they go on using it; EBS asks for the calls that
// encrypt again where an image is encrypted with another key.
void add_keys(const RightsScope& scope, Json& statements) {
  if (scope.keys.empty()) return;
  statements.push_back(allow("SeeKeys", {"kms:DescribeKey"}, scope.keys, {}));
  statements.push_back(
      allow("UseKeys", {"kms:Decrypt", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncrypt*"}, scope.keys,
            Conditions().add("StringLike", "kms:ViaService", {"ec2.*", "elasticfilesystem.*", "fsx.*"})));
  statements.push_back(allow("LendKeys", {"kms:CreateGrant"}, scope.keys,
                             Conditions().add("Bool", "kms:GrantIsForAWSResource", {"true"})));
}

void add_roles(const RightsScope& scope, const Narrowing& narrow, Json& statements) {
  Conditions bounded;
  if (!scope.permissions_boundary.empty()) {
    bounded.add("StringEquals", "iam:PermissionsBoundary", {scope.permissions_boundary});
  }
  statements.push_back(
      allow("MakeRoleOfHead", {"iam:CreateRole", "iam:PutRolePolicy"}, {narrow.in_iam("role")}, bounded));
  statements.push_back(
      allow("ChangeRoleOfHead",
            {"iam:AddRoleToInstanceProfile", "iam:CreateInstanceProfile", "iam:DeleteInstanceProfile", "iam:DeleteRole",
             "iam:DeleteRolePolicy", "iam:RemoveRoleFromInstanceProfile", "iam:TagInstanceProfile", "iam:TagRole"},
            {narrow.in_iam("role"), narrow.in_iam("instance-profile")}, {}));
  statements.push_back(allow(
      "ReadRoles", {"iam:GetInstanceProfile", "iam:GetRole", "iam:ListInstanceProfiles", "iam:ListRoles"}, {"*"}, {}));
  const Spec usual;
  Names given{narrow.in_iam("role"), narrow.role(usual.service_role), narrow.role(usual.instance_profile)};
  given.insert(given.end(), scope.roles.begin(), scope.roles.end());
  // In China the names of these services end with ".cn".
  statements.push_back(allow("GiveRoles", {"iam:PassRole"}, given,
                             Conditions().add("StringLike", "iam:PassedToService",
                                              {"ec2.amazonaws.com*", "elasticmapreduce.amazonaws.com*"})));
  // AWS makes these roles when the account uses a service for the first time.
  statements.push_back(
      allow("ServiceRoles", {"iam:CreateServiceLinkedRole"}, {narrow.role("aws-service-role/*")},
            Conditions().add("StringEquals", "iam:AWSServiceName",
                             {"ec2fleet.amazonaws.com", "elasticfilesystem.amazonaws.com",
                              "elasticmapreduce.amazonaws.com", "fsx.amazonaws.com", "spot.amazonaws.com"})));
}

void add_buckets(const RightsScope& scope, const Narrowing& narrow, Json& statements) {
  if (scope.buckets.empty()) return;
  Names buckets, objects;
  for (const std::string& name : scope.buckets) {
    buckets.push_back(narrow.bucket(name, ""));
    objects.push_back(narrow.bucket(name, "/*"));
  }
  statements.push_back(allow("SeeBuckets", {"s3:ListBucket", "s3:ListBucketMultipartUploads"}, buckets, {}));
  statements.push_back(allow(
      "Send", {"s3:AbortMultipartUpload", "s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject"}, objects, {}));
}

// Machines of a stack get the cluster's tag by the first of these; whatever else is changed of them asks for that tag.
void add_stacks(const RightsScope& scope, const Narrowing& narrow, Json& statements) {
  if (!scope.adopts) return;
  statements.push_back(allow("ReadStacks",
                             {"autoscaling:DescribeAutoScalingGroups", "cloudformation:DescribeStackResources",
                              "cloudformation:DescribeStacks"},
                             {"*"}, narrow.here()));
  statements.push_back(allow("AdoptMachines", {"ec2:CreateTags"}, narrow.of_ec2({"instance"}), narrow.made()));
  statements.push_back(
      allow("ChangeAdopted", {"ec2:ModifyInstanceAttribute"}, narrow.of_ec2({"instance"}), narrow.owned()));
  statements.push_back(allow("GiveGroups", {"ec2:ModifyInstanceAttribute"}, narrow.of_ec2({"security-group"}), {}));
  // AWS asks for the last one beside the right of EFS.
  statements.push_back(
      allow("ChangeStacks",
            {"autoscaling:ResumeProcesses", "autoscaling:SuspendProcesses", "autoscaling:UpdateAutoScalingGroup",
             "elasticfilesystem:ModifyMountTargetSecurityGroups", "ec2:ModifyNetworkInterfaceAttribute"},
            {"*"}, narrow.here()));
}

}  // namespace

Json user_rights(const RightsScope& scope) {
  const Narrowing narrow(scope);
  Json statements = Json::array();
  statements.push_back(reads(narrow));
  statements.push_back(allow("ReadImages", {"ssm:GetParameter"}, {narrow.public_parameters()}, {}));
  add_machines(narrow, statements);
  add_resources(narrow, statements);
  add_roles(scope, narrow, statements);
  add_keys(scope, statements);
  add_buckets(scope, narrow, statements);
  add_stacks(scope, narrow, statements);
  return policy(std::move(statements));
}

Json head_rights(const RightsScope& scope) {
  const Narrowing narrow(scope);
  const Names instances = narrow.of_ec2({"instance"});
  Json statements = Json::array();
  if (scope.heals) {
    add_healing(narrow, statements);
    add_keys(scope, statements);
    return policy(std::move(statements));
  }
  statements.push_back(read_of_fleet(narrow));
  // The right covers this one tag key, so that the head cannot make another machine a node or change roles.
  statements.push_back(allow("SetStatus", {"ec2:CreateTags"}, instances,
                             narrow.owned().add("ForAllValues:StringEquals", "aws:TagKeys", {tag::kStatus})));
  statements.push_back(end_workers(narrow));
  return policy(std::move(statements));
}

Json worker_rights(const RightsScope& scope) {
  const Narrowing narrow(scope);
  const std::string role_tag = std::string("aws:RequestTag/") + tag::kRole;
  Json statements = Json::array();
  statements.push_back(read_of_fleet(narrow));
  statements.push_back(allow("StartHead", {"ec2:RunInstances"}, narrow.of_ec2({"instance"}),
                             narrow.by_template(narrow.made().add("StringEquals", role_tag, {"head"}))));
  statements.push_back(
      allow("StartHeadWithDisk", {"ec2:RunInstances"}, narrow.of_ec2({"volume"}), narrow.by_template(narrow.made())));
  statements.push_back(allow("StartHeadByTemplate", {"ec2:RunInstances"}, narrow.of_ec2({"launch-template"}),
                             narrow.owned().add("StringEquals", of_resource(tag::kRole), {"head"})));
  statements.push_back(allow("StartHeadWith", {"ec2:RunInstances"},
                             narrow.of_ec2({"capacity-reservation", "image", "key-pair", "network-interface",
                                            "placement-group", "security-group", "snapshot", "subnet"}),
                             narrow.by_template({})));
  statements.push_back(giving("GiveRoleToHead", narrow.role_of_head()));
  statements.push_back(allow("TagMade", {"ec2:CreateTags"}, narrow.of_ec2({"instance", "volume"}),
                             Conditions().add("StringEquals", "ec2:CreateAction", {"RunInstances"})));
  statements.push_back(allow(
      "TellWhatWasDone", {"ec2:CreateTags"}, narrow.of_ec2({"security-group"}),
      narrow.owned().add("ForAllValues:StringLike", "aws:TagKeys", {std::string(tag::kEvent) + "*", tag::kHealer})));
  add_keys(scope, statements);
  return policy(std::move(statements));
}

Json head_trust() {
  return policy(Json::array({Json::object({{"Effect", "Allow"},
                                           {"Principal", Json::object({{"Service", "ec2.amazonaws.com"}})},
                                           {"Action", "sts:AssumeRole"}})}));
}

}  // namespace dtrain::cluster
