#include "rules.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include <dtrain/base/text.hpp>

#include "ec2_fields.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

using Block = std::array<unsigned char, 17>;  // the network's bytes, and the number of its bits

std::optional<Block> block_of(const std::string& cidr) {
  const std::size_t slash = cidr.find('/');
  if (slash == cidr.npos) return std::nullopt;
  const bool six = cidr.find(':') != cidr.npos;
  const int most = six ? 128 : 32;
  const auto bits = parse_integer(cidr.substr(slash + 1));
  Block block{};
  if (!bits || *bits < 0 || *bits > most) return std::nullopt;
  if (inet_pton(six ? AF_INET6 : AF_INET, cidr.substr(0, slash).c_str(), block.data()) != 1) return std::nullopt;
  for (int bit = static_cast<int>(*bits); bit < most; ++bit) {
    block[static_cast<std::size_t>(bit / 8)] &= static_cast<unsigned char>(~(0x80 >> (bit % 8)));
  }
  block.back() = static_cast<unsigned char>(*bits);
  return block;
}

bool is_open_to(const SecurityGroup& group, const std::string& source) {
  return std::ranges::any_of(group.ssh_sources, [&](const auto& one) { return is_same_block(one, source); });
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

bool is_same_block(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto first = block_of(a), second = block_of(b);
  return first && first == second;
}

void set_ssh_rule(net::AwsCalls& aws, const SecurityGroup& group, const std::string& source) {
  if (!is_open_to(group, source)) {
    add_rule(aws, "AuthorizeSecurityGroupIngress", group.id, ssh_rule(source),
             [&](const SecurityGroup& now) { return is_open_to(now, source); });
  }
  for (const std::string& old : group.ssh_sources) {
    if (is_same_block(old, source)) continue;
    change_rules(aws, "RevokeSecurityGroupIngress", group.id, ssh_rule(old), "InvalidPermission.NotFound",
                 [&](const SecurityGroup& now) { return !is_open_to(now, old); });
  }
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

}  // namespace dtrain::cluster
