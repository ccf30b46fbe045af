#include "rules.hpp"

#include <algorithm>
#include <functional>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/admission.hpp>
#include <dtrain/cluster/wish.hpp>

#include "ec2_fields.hpp"
#include "plan/ssh_rule.hpp"
#include "resources.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

bool is_six(const std::string& source) { return source.find(':') != source.npos; }

// A rule is revoked without its description: those of earlier versions have none.
Fields ssh_rule(const std::string& source) {
  return {{"IpPermissions.1.IpProtocol", "tcp"},
          {"IpPermissions.1.FromPort", "22"},
          {"IpPermissions.1.ToPort", "22"},
          {is_six(source) ? "IpPermissions.1.Ipv6Ranges.1.CidrIpv6" : "IpPermissions.1.IpRanges.1.CidrIp", source}};
}

Fields described_ssh_rule(const std::string& source) {
  Fields fields = ssh_rule(source);
  fields.emplace_back(
      is_six(source) ? "IpPermissions.1.Ipv6Ranges.1.Description" : "IpPermissions.1.IpRanges.1.Description", kOwnRule);
  return fields;
}

Fields own_rule(const std::string& group) {
  return {{"IpPermissions.1.IpProtocol", "-1"}, {"IpPermissions.1.Groups.1.GroupId", group}};
}

using Condition = std::function<bool(const SecurityGroup&)>;

// Whether the group comes to be so while AWS may still show an older state of it.
bool becomes(net::AwsCalls& aws, const std::string& group, const Condition& condition) {
  return look_until(std::min<std::chrono::milliseconds>(kUntilVisible, aws.patience()), [&] {
    const auto found =
        aws.query_all(net::kEc2, "DescribeSecurityGroups", filtered({{"group-id", group}}), "securityGroupInfo");
    return !found.empty() && condition(group_of(found.front()));
  });
}

// `settled`: a group in which the call has nothing to do. `said`: the code of an answer that says so.
void change_rules(net::AwsCalls& aws, const std::string& action, const std::string& group, Fields rule,
                  std::string_view said, const Condition& settled) {
  rule.emplace_back("GroupId", group);
  try {
    aws.query(net::kEc2, action, std::move(rule));
  } catch (const net::AwsError& problem) {
    if (problem.facts().code != said || !becomes(aws, group, settled)) throw;
  }
}

void add_rule(net::AwsCalls& aws, const std::string& action, const std::string& group, Fields rule,
              const Condition& is_there) {
  change_rules(aws, action, group, std::move(rule), "InvalidPermission.Duplicate", is_there);
}

}  // namespace

// A group of an earlier version has a rule without a description, which is dtrain's as long as it is the only one: it
// is closed first, so that an interrupted change leaves no second rule beside it.
void set_ssh_rule(net::AwsCalls& aws, const SecurityGroup& group, const std::string& source) {
  const SshChange change = ssh_change(group, source);
  const auto open = [&] {
    add_rule(aws, "AuthorizeSecurityGroupIngress", group.id, described_ssh_rule(source),
             [&](const SecurityGroup& now) { return is_open_to(now, source); });
  };
  const bool closes_first = !group.tags.contains(tag::kRules);
  if (change.opens && !closes_first) open();
  for (const std::string& old : change.closes) {
    change_rules(aws, "RevokeSecurityGroupIngress", group.id, ssh_rule(old), "InvalidPermission.NotFound",
                 [&](const SecurityGroup& now) { return !is_open_to(now, old); });
  }
  if (change.opens && closes_first) open();
}

void set_own_rules(net::AwsCalls& aws, const SecurityGroup& group, bool efa) {
  if (!group.lets_own_in) {
    add_rule(aws, "AuthorizeSecurityGroupIngress", group.id, own_rule(group.id),
             [](const SecurityGroup& now) { return now.lets_own_in; });
  }
  // EFA traffic passes only by a rule that names the group, whatever else is open.
  if (efa && !group.lets_own_out) {
    add_rule(aws, "AuthorizeSecurityGroupEgress", group.id, own_rule(group.id),
             [](const SecurityGroup& now) { return now.lets_own_out; });
  }
}

std::string admission_secret(net::AwsCalls& aws, SecurityGroup& group) {
  if (!group.tags.contains(tag::kAdmission)) {
    group.tags[tag::kAdmission] = new_admission_secret();
    set_tags(aws, {group.id}, {{tag::kAdmission, group.tags[tag::kAdmission]}});
  }
  return group.tags[tag::kAdmission];
}

void write_wish(const AwsContext& context, const Fleet& fleet, const ClusterRequest& request) {
  const auto change = [&](Wish& wish) {
    wish.base = request.spec.workers;
    if (request.budget) wish.budget = *request.budget > 0 ? request.budget : std::nullopt;
  };
  Wish first = wish_without_tag(fleet, request.spec.workers);
  try {
    change_wish(context.aws, fleet, first, change);
  } catch (const DataError& problem) {
    context.say(problem.what());
    change(first);
    set_tags(context.aws, {fleet.group->id}, {{tag::kWish, wish_text(first)}});
  }
}

}  // namespace dtrain::cluster
