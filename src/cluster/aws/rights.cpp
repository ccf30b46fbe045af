#include <dtrain/cluster/rights.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {
namespace {

using Names = std::vector<std::string>;

Json texts(const Names& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back(name);
  return list;
}

Json one_or_all(const Names& names) { return names.size() == 1 ? Json(names.front()) : texts(names); }

// The conditions of a statement: operator, key, values.
class Conditions {
 public:
  Conditions& add(const std::string& comparison, const std::string& key, const Names& values) {
    if (!all_.find(comparison)) all_[comparison] = Json::object();
    all_[comparison][key] = comparison.starts_with("For") ? texts(values) : one_or_all(values);
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
  if (!scope.partition.empty()) return scope.partition;
  if (scope.region.starts_with("cn-")) return "aws-cn";
  return scope.region.starts_with("us-gov-") ? "aws-us-gov" : "aws";
}

std::string or_any(const std::string& name) { return name.empty() ? "*" : name; }

// ARNs and conditions in this scope.
class Narrowing {
 public:
  explicit Narrowing(const RightsScope& scope) : scope_(scope) {}

  Names of_ec2(const Names& kinds) const {
    Names arns;
    for (const std::string& kind : kinds) {
      arns.push_back(fmt::format("arn:{}:ec2:{}:{}:{}/*", partition_in(scope_), or_any(scope_.region),
                                 or_any(scope_.account), kind));
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

 private:
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
                "elasticmapreduce:DescribeCluster",
                "elasticmapreduce:ListClusters",
                "elasticmapreduce:ListInstanceGroups",
                "elasticmapreduce:ListInstances",
                "servicequotas:GetServiceQuota",
                "ec2:DescribeNetworkInterfaceAttribute",
                "ec2:DescribeNetworkInterfaces"},
               {"*"}, narrow.here());
}

void add_machines(const Narrowing& narrow, Json& statements) {
  statements.push_back(
      allow("StartMachines", {"ec2:RunInstances"}, narrow.of_ec2({"instance", "volume"}), narrow.made()));
  statements.push_back(allow("StartMachinesWithOwn", {"ec2:RunInstances"},
                             narrow.of_ec2({"launch-template", "security-group"}), narrow.owned()));
  Names others = narrow.of_ec2(
      {"capacity-reservation", "image", "key-pair", "network-interface", "placement-group", "snapshot", "subnet"});
  statements.push_back(allow("StartMachinesWith", {"ec2:RunInstances"}, others, {}));
  // A fleet starts its machines by RunInstances, which the statements above narrow.
  statements.push_back(allow("StartFleets", {"ec2:CreateFleet"}, {"*"}, narrow.here()));
}

void add_resources(const Narrowing& narrow, Json& statements) {
  statements.push_back(
      allow("Make",
            {"ec2:CreateLaunchTemplate", "ec2:CreatePlacementGroup", "ec2:CreateSecurityGroup", "ec2:ImportKeyPair",
             "elasticfilesystem:CreateFileSystem", "elasticmapreduce:AddTags", "elasticmapreduce:RunJobFlow"},
            {"*"}, narrow.made()));
  statements.push_back(allow("MakeInNetwork", {"ec2:CreateSecurityGroup"}, narrow.of_ec2({"vpc"}), {}));
  statements.push_back(allow("TagWhatIsMade", {"ec2:CreateTags"}, narrow.of_ec2({"*"}),
                             Conditions().add("StringEquals", "ec2:CreateAction",
                                              {"CreateFleet", "CreateLaunchTemplate", "CreatePlacementGroup",
                                               "CreateSecurityGroup", "ImportKeyPair", "RunInstances"})));
  statements.push_back(allow("TagFileSystemsThatAreMade", {"elasticfilesystem:TagResource"}, {"*"},
                             Conditions().add("StringEquals", "elasticfilesystem:CreateAction", {"CreateFileSystem"})));
  statements.push_back(
      allow("ChangeOwn",
            {"ec2:AuthorizeSecurityGroupEgress", "ec2:AuthorizeSecurityGroupIngress", "ec2:CreateLaunchTemplateVersion",
             "ec2:CreateTags", "ec2:DeleteKeyPair", "ec2:DeleteLaunchTemplate", "ec2:DeletePlacementGroup",
             "ec2:DeleteSecurityGroup", "ec2:DeleteTags", "ec2:GetConsoleOutput", "ec2:ModifyLaunchTemplate",
             "ec2:RevokeSecurityGroupIngress", "ec2:StartInstances", "ec2:StopInstances", "ec2:TerminateInstances",
             "elasticfilesystem:DeleteFileSystem", "elasticmapreduce:ModifyInstanceGroups",
             "elasticmapreduce:TerminateJobFlows"},
            {"*"}, narrow.owned()));
  // `--shared efs:ID` names a file system of the user, without dtrain's tags. EFS makes the network interfaces.
  statements.push_back(allow("MountFileSystems",
                             {"elasticfilesystem:CreateMountTarget", "elasticfilesystem:DeleteMountTarget",
                              "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface"},
                             {"*"}, narrow.here()));
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
  statements.push_back(allow("MakeRolesOfServices", {"iam:CreateServiceLinkedRole"},
                             {narrow.role("aws-service-role/*")},
                             Conditions().add("StringEquals", "iam:AWSServiceName",
                                              {"ec2fleet.amazonaws.com", "elasticfilesystem.amazonaws.com",
                                               "elasticmapreduce.amazonaws.com", "spot.amazonaws.com"})));
}

void add_buckets(const RightsScope& scope, const Narrowing& narrow, Json& statements) {
  if (scope.buckets.empty()) return;
  Names buckets, objects;
  for (const std::string& name : scope.buckets) {
    buckets.push_back(narrow.bucket(name, ""));
    objects.push_back(narrow.bucket(name, "/*"));
  }
  statements.push_back(allow("SeeBuckets", {"s3:ListBucket", "s3:ListBucketMultipartUploads"}, buckets, {}));
  statements.push_back(allow("SendToBuckets",
                             {"s3:AbortMultipartUpload", "s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject"},
                             objects, {}));
}

bool holds_only(const std::string& text, std::string_view marks) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || marks.find(c) != std::string_view::npos;
  });
}

}  // namespace

void check_scope(const RightsScope& scope) {
  if (!scope.cluster.empty()) check_cluster_name(scope.cluster);
  if (!scope.region.empty() && !holds_only(scope.region, "-"))
    throw UsageError(fmt::format("setting 'region' '{}' is no region", scope.region), "such as eu-west-1");
  if (!scope.permissions_boundary.empty()) check_boundary(scope.permissions_boundary);
  for (const std::string& role : scope.roles) {
    if (!is_iam_arn(role, "role/")) {
      throw UsageError(fmt::format("setting 'pass-role' '{}' is no ARN of a role", role),
                       "such as arn:aws:iam::123456789012:role/nodes");
    }
  }
  for (const std::string& bucket : scope.buckets) {
    if (!holds_only(bucket, "-."))
      throw UsageError(fmt::format("setting 'bucket' '{}' is no name of a bucket", bucket),
                       "give the name without s3:// and folders");
  }
}

Json user_rights(const RightsScope& scope) {
  const Narrowing narrow(scope);
  Json statements = Json::array();
  statements.push_back(reads(narrow));
  statements.push_back(allow("ReadImages", {"ssm:GetParameter"}, {narrow.public_parameters()}, {}));
  add_machines(narrow, statements);
  add_resources(narrow, statements);
  add_roles(scope, narrow, statements);
  add_buckets(scope, narrow, statements);
  return policy(std::move(statements));
}

Json head_rights(const RightsScope& scope) {
  const Narrowing narrow(scope);
  const Names instances = narrow.of_ec2({"instance"});
  Json statements = Json::array();
  statements.push_back(allow("Read",
                             {"ec2:DescribeInstances", "ec2:DescribeLaunchTemplates", "ec2:DescribeSecurityGroups"},
                             {"*"}, narrow.here()));
  // The right covers this one tag key, so that the head cannot make another machine a node or change roles.
  statements.push_back(allow("SetStatus", {"ec2:CreateTags"}, instances,
                             narrow.owned().add("ForAllValues:StringEquals", "aws:TagKeys", {tag::kStatus})));
  statements.push_back(
      allow("EndWorkers", {"ec2:TerminateInstances"}, instances,
            narrow.owned().add("StringEquals", fmt::format("aws:ResourceTag/{}", tag::kRole), {"worker"})));
  return policy(std::move(statements));
}

Json head_trust() {
  return policy(Json::array({Json::object({{"Effect", "Allow"},
                                           {"Principal", Json::object({{"Service", "ec2.amazonaws.com"}})},
                                           {"Action", "sts:AssumeRole"}})}));
}

}  // namespace dtrain::cluster
