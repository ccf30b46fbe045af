#include "head_role.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/rights.hpp>

#include "ec2_fields.hpp"
#include "resources.hpp"

namespace dtrain::cluster {
namespace {

constexpr const char* kPolicy = "dtrain";

Fields tagged(Fields fields, const Tags& tags) {
  int number = 0;
  for (const auto& [key, value] : tags) {
    ++number;
    fields.emplace_back(fmt::format("Tags.member.{}.Key", number), key);
    fields.emplace_back(fmt::format("Tags.member.{}.Value", number), value);
  }
  return fields;
}

// "arn:aws-cn:sts::123456789012:..." -> "aws-cn".
std::string partition_of(const Account& account) {
  const std::vector<std::string> parts = split(account.person, ':');
  return parts.size() > 1 && parts.front() == "arn" ? parts[1] : "";
}

// The entries of an IAM list under the path, from all pages.
std::vector<net::Element> all_under(net::AwsCalls& aws, const std::string& action, const std::string& list,
                                    const std::string& path) {
  std::vector<net::Element> all;
  std::string marker;
  net::Pages pages(aws, "iam " + action);
  do {
    if (!marker.empty()) pages.turn(marker);
    Fields fields{{"PathPrefix", path}};
    if (!marker.empty()) fields.emplace_back("Marker", marker);
    const net::Element result = aws.query(net::kIam, action, std::move(fields)).at(action + "Result");
    for (net::Element& one : result.list(list)) {
      if (one.value("Path") == path) all.push_back(std::move(one));  // checked, because what is listed may be removed
    }
    marker = result.value("IsTruncated") == "true" ? result.value("Marker") : "";
  } while (!marker.empty());
  return all;
}

net::Element profile_named(net::AwsCalls& aws, const std::string& name) {
  return aws.query(net::kIam, "GetInstanceProfile", {{"InstanceProfileName", name}})
      .at("GetInstanceProfileResult")
      .at("InstanceProfile");
}

// Returns false if it exists already.
bool makes(net::AwsCalls& aws, const std::string& action, Fields fields) {
  try {
    aws.query(net::kIam, action, std::move(fields));
    return true;
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::exists) throw;
    return false;
  }
}

void refuse_another(const std::string& kind, const std::string& name, const std::string& path,
                    const net::Element& there) {
  if (there.value("Path") == path) return;
  throw RemoteError(fmt::format("there is another {} {}, under {}", kind, name, there.value("Path")),
                    "choose another name for the cluster, or give setting 'elastic-role' NAME");
}

void call_unless_gone(net::AwsCalls& aws, const std::string& action, Fields fields) {
  try {
    aws.query(net::kIam, action, std::move(fields));
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::not_found) throw;
  }
}

RightsScope scope_of(const ClusterRequest& request, const Account& account) {
  return {.region = account.region,
          .cluster = request.name,
          .account = account.number,
          .partition = partition_of(account),
          .keys = account.kms_key.empty() ? std::vector<std::string>{} : std::vector{account.kms_key},
          .heals = request.spec.heal};
}

struct RoleOrder {
  std::string name, description;
  Json rights;
};

void make_role(net::AwsCalls& aws, const ClusterRequest& request, const Account& account, const RoleOrder& order) {
  const std::string &name = order.name, path = role_path(account.region, request.name);
  const Tags tags = common_tags(request.name, account);
  aws.created(name);  // by the calls below, or a moment ago by another `up`
  Fields role{{"RoleName", name},
              {"Path", path},
              {"Description", order.description},
              {"AssumeRolePolicyDocument", head_trust().dump()}};
  if (const std::string& boundary = request.spec.permissions_boundary; !boundary.empty()) {
    role.emplace_back("PermissionsBoundary", boundary);
  }
  if (!makes(aws, "CreateRole", tagged(role, tags))) {
    refuse_another("role", name, path,
                   aws.query(net::kIam, "GetRole", {{"RoleName", name}}).at("GetRoleResult").at("Role"));
  }
  aws.query(net::kIam, "PutRolePolicy",
            {{"RoleName", name}, {"PolicyName", kPolicy}, {"PolicyDocument", order.rights.dump()}});
  if (!makes(aws, "CreateInstanceProfile", tagged({{"InstanceProfileName", name}, {"Path", path}}, tags))) {
    const net::Element there = profile_named(aws, name);
    refuse_another("instance profile", name, path, there);
    if (!there.list("Roles").empty()) return;
  }
  try {
    aws.query(net::kIam, "AddRoleToInstanceProfile", {{"InstanceProfileName", name}, {"RoleName", name}});
  } catch (const net::AwsError&) {
    // A profile holds one role: a concurrent `up`, or an earlier call whose reply was lost, has added it.
    if (profile_named(aws, name).list("Roles").empty()) throw;
  }
}

}  // namespace

std::string role_name(const std::string& region, const std::string& cluster) {
  return fmt::format("dtrain-{}-{}", cluster, region);
}

// IAM takes 64 characters: 40 of the cluster, and 14 of the longest region.
std::string worker_role_name(const std::string& region, const std::string& cluster) {
  return role_name(region, cluster) + "-w";
}

std::string role_path(const std::string& region, const std::string& cluster) {
  return fmt::format("/dtrain/{}/{}/", region, cluster);
}

std::string profile_of_head(const ClusterRequest& request, const Account& account) {
  if (!wants_own_role(request.spec)) return request.spec.elastic_role;
  return role_name(account.region, request.name);
}

std::string profile_of_workers(const ClusterRequest& request, const Account& account) {
  return workers_replace_head(request.spec) ? worker_role_name(account.region, request.name) : "";
}

bool is_about_the_profile(const std::string& code, const std::string& message) {
  return code == "InvalidParameterValue" && message.find("nstance Profile") != std::string::npos;
}

Json role_rights(const ClusterRequest& request, const Account& account) {
  return head_rights(scope_of(request, account));
}

void check_profile(net::AwsCalls& aws, const std::string& name) try {
  profile_named(aws, name);
} catch (const net::AwsError& problem) {
  if (problem.facts().problem != net::AwsProblem::denied) throw;
}

// A stack has made its role and its profile under other names.
bool has_roles(net::AwsCalls& aws, const Spec& spec, const std::string& cluster) try {
  const auto profiles = all_under(aws, "ListInstanceProfiles", "InstanceProfiles", role_path(aws.region(), cluster));
  const std::string workers = worker_role_name(aws.region(), cluster);
  bool of_head = false, of_workers = !workers_replace_head(spec);
  for (const net::Element& one : profiles) {
    if (one.list("Roles").empty()) continue;
    (one.value("InstanceProfileName") == workers ? of_workers : of_head) = true;
  }
  return of_head && of_workers;
} catch (const net::AwsError& problem) {
  if (problem.facts().problem != net::AwsProblem::denied) throw;
  return false;
}

void make_roles(net::AwsCalls& aws, const ClusterRequest& request, const Account& account) {
  make_role(aws, request, account,
            {role_name(account.region, request.name), fmt::format("the head of dtrain cluster {}", request.name),
             role_rights(request, account)});
  if (!workers_replace_head(request.spec)) return;
  make_role(aws, request, account,
            {worker_role_name(account.region, request.name),
             fmt::format("the workers of dtrain cluster {}", request.name), worker_rights(scope_of(request, account))});
}

OwnRoles own_roles(net::AwsCalls& aws, const std::string& cluster) {
  const std::string path = role_path(aws.region(), cluster);
  OwnRoles own;
  for (const net::Element& one : all_under(aws, "ListInstanceProfiles", "InstanceProfiles", path)) {
    own.profiles.push_back(one.value("InstanceProfileName"));
  }
  for (const net::Element& one : all_under(aws, "ListRoles", "Roles", path)) {
    own.roles.push_back(one.value("RoleName"));
  }
  return own;
}

void remove_profile(net::AwsCalls& aws, const std::string& name) {
  for (const net::Element& role : profile_named(aws, name).list("Roles")) {
    call_unless_gone(aws, "RemoveRoleFromInstanceProfile",
                     {{"InstanceProfileName", name}, {"RoleName", role.value("RoleName")}});
  }
  aws.query(net::kIam, "DeleteInstanceProfile", {{"InstanceProfileName", name}});
}

void remove_role(net::AwsCalls& aws, const std::string& name) {
  call_unless_gone(aws, "DeleteRolePolicy", {{"RoleName", name}, {"PolicyName", kPolicy}});
  aws.query(net::kIam, "DeleteRole", {{"RoleName", name}});
}

}  // namespace dtrain::cluster
