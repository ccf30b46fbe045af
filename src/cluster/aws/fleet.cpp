#include <dtrain/cluster/fleet.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/admission.hpp>
#include <dtrain/cluster/emr.hpp>

#include "ec2_fields.hpp"
#include "rules.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::size_t kLongestValue = 256;
constexpr const char* kElasticEnd = "-aws-dl-cfn-elastic-worker";
// Without a page size EC2 chooses one, and may time out.
const net::HttpField kPage{"MaxResults", "1000"};

bool is_open_for_all(const net::Element& rule) { return rule.value("ipProtocol") == "-1"; }

bool names_group(const net::Element& rule, const std::string& group) {
  const auto pairs = rule.list("groups");
  return std::any_of(pairs.begin(), pairs.end(), [&](const auto& one) { return one.value("groupId") == group; });
}

// The blocks of addresses from which a rule opens port 22 alone. Wider rules are those of other people.
void add_ssh_sources(const net::Element& rule, SecurityGroup& group) {
  if (rule.value("ipProtocol") != "tcp" || rule.value("fromPort") != "22" || rule.value("toPort") != "22") return;
  for (const auto& [list, field] : {std::pair("ipRanges", "cidrIp"), std::pair("ipv6Ranges", "cidrIpv6")}) {
    for (const net::Element& range : rule.list(list)) {
      group.ssh_sources.push_back(range.value(field));
      if (range.value("description") == kOwnRule) group.own_ssh_sources.push_back(range.value(field));
    }
  }
}

// Earlier versions described no rule, and left only one of this kind. Where there are several, nothing tells whose they
// are, and dtrain counts none as its own.
void settle_own_sources(SecurityGroup& group) {
  std::ranges::sort(group.ssh_sources);
  std::ranges::sort(group.own_ssh_sources);
  const bool describes = group.tags.contains(tag::kRules);
  if (!describes && group.own_ssh_sources.empty() && group.ssh_sources.size() == 1) {
    group.own_ssh_sources = group.ssh_sources;
  }
}

std::optional<SecurityGroup> read_group(net::AwsCalls& aws, const std::string& name) {
  const Fields fields = filtered({{std::string("tag:") + tag::kCluster, name}});
  const auto found = aws.query_all(net::kEc2, "DescribeSecurityGroups", fields, "securityGroupInfo");
  if (found.empty()) return std::nullopt;
  return group_of(found.front());
}

// That of the head carries its role; that of the workers none.
void add_template(const net::Element& found, Fleet& fleet) {
  LaunchTemplate made{
      .id = found.value("launchTemplateId"), .name = found.value("launchTemplateName"), .tags = tags_of(found)};
  const auto role = made.tags.find(tag::kRole);
  auto& place = role != made.tags.end() && role->second == "head" ? fleet.head_template : fleet.launch_template;
  if (!place) place = std::move(made);
}

void read_templates(net::AwsCalls& aws, Fleet& fleet) {
  const Fields fields = filtered({{std::string("tag:") + tag::kCluster, fleet.name}});
  for (const net::Element& one : aws.query_all(net::kEc2, "DescribeLaunchTemplates", fields, "launchTemplates")) {
    add_template(one, fleet);
  }
}

bool comes_before(const Node& a, const Node& b) {
  if (a.role != b.role) return a.role == Role::head;
  return a.name != b.name ? a.name < b.name : a.instance_id < b.instance_id;
}

// The beginning of the text that a tag's value can hold, in whole characters of UTF-8.
std::string_view first_piece(std::string_view text) {
  if (text.size() <= kLongestValue) return text;
  const auto goes_on = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::size_t size = kLongestValue;
  for (int back = 0; back < 4 && goes_on(text[size]); ++back) --size;
  return text.substr(0, goes_on(text[size]) ? kLongestValue : size);  // the text is no UTF-8: any cut is as good
}

std::string value_of(const Tags& tags, const std::string& key) {
  const auto found = tags.find(key);
  return found == tags.end() ? std::string() : found->second;
}

// "User initiated (2026-01-31 12:00:00 GMT)" -> "2026-01-31 12:00:00 GMT".
std::string time_in(const std::string& reason) {
  const auto open = reason.find('('), close = reason.find(')');
  if (open == reason.npos || close == reason.npos || close < open) return {};
  return reason.substr(open + 1, close - open - 1);
}

// A tag that was changed by hand to nonsense: the machine counts as one.
int tagged_weight(const Tags& tags) {
  const auto number = parse_integer(value_of(tags, tag::kWeight));
  return number && *number >= 1 && *number <= kMostWeight ? static_cast<int>(*number) : 1;
}

}  // namespace

std::string elastic_tag(const std::string& cluster) { return cluster + kElasticEnd; }

std::optional<std::string> cluster_of_elastic_tag(std::string_view tag) {
  const std::string_view end = kElasticEnd;
  if (tag.size() <= end.size() || !tag.ends_with(end)) return std::nullopt;
  return std::string(tag.substr(0, tag.size() - end.size()));
}

std::string worker_name(int number) { return fmt::format("w{:04}", number); }

std::optional<int> worker_number(std::string_view name) {
  if (!name.starts_with('w')) return std::nullopt;
  const auto number = parse_integer(name.substr(1));
  if (!number || *number < 1 || *number > 1'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

bool is_adopted(const Node& node) { return node.tags.contains(tag::kAdopted); }

SecurityGroup group_of(const net::Element& found) {
  SecurityGroup group{.id = found.value("groupId"),
                      .name = found.value("groupName"),
                      .vpc_id = found.value("vpcId"),
                      .tags = tags_of(found)};
  for (const net::Element& rule : found.list("ipPermissions")) {
    if (is_open_for_all(rule) && names_group(rule, group.id)) group.lets_own_in = true;
    add_ssh_sources(rule, group);
  }
  for (const net::Element& rule : found.list("ipPermissionsEgress")) {
    if (is_open_for_all(rule) && names_group(rule, group.id)) group.lets_own_out = true;
  }
  settle_own_sources(group);
  return group;
}

Tags tags_of(const net::Element& resource) {
  Tags tags;
  for (const char* list : {"tagSet", "tags"}) {
    for (const net::Element& one : resource.list(list)) tags[one.value("key")] = one.value("value");
  }
  return tags;
}

Node node_of(const net::Element& instance) {
  Node node{.instance_id = instance.value("instanceId"),
            .state = instance.at("instanceState").value("name"),
            .private_ip = instance.value("privateIpAddress"),
            .public_ip = instance.value("ipAddress"),
            .zone = instance.at("placement").value("availabilityZone"),
            .subnet_id = instance.value("subnetId"),
            .type = instance.value("instanceType"),
            .image_id = instance.value("imageId"),
            .market = instance.value("instanceLifecycle") == "spot" ? Market::spot : Market::on_demand,
            .launch_time = instance.value("launchTime"),
            .ended_at = time_in(instance.value("reason")),
            .end_reason = instance.at("stateReason").value("code"),
            .end_message = instance.at("stateReason").value("message"),
            .disk_in_machine = instance.value("rootDeviceType") == "instance-store",
            .tags = tags_of(instance)};
  node.name = value_of(node.tags, tag::kNode);
  // A tag that was changed by hand: names stand in command lines and in the configuration of ssh.
  if (node.name.empty() || !is_plain_word(node.name)) node.name = node.instance_id;
  node.role = value_of(node.tags, tag::kRole) == "head" ? Role::head : Role::worker;
  node.base = value_of(node.tags, tag::kBase) == "yes";
  node.elastic = node.tags.count(elastic_tag(value_of(node.tags, tag::kCluster))) > 0;
  node.elastic_status = value_of(node.tags, tag::kStatus);
  node.launch = value_of(node.tags, tag::kLaunch);
  node.weight = tagged_weight(node.tags);
  return node;
}

Tags option_tags(const std::map<std::string, std::string>& options) {
  Tags tags;
  for (const auto& [name, text] : options) {
    std::string key = fmt::format("{}{}", tag::kOption, name);
    std::string_view rest = text;
    for (int part = 1; part == 1 || !rest.empty(); ++part) {
      const std::string_view piece = first_piece(rest);
      tags[key] = piece;
      rest.remove_prefix(piece.size());
      key = fmt::format("{}{}:{}", tag::kOption, name, part);
    }
  }
  return tags;
}

std::map<std::string, std::string> options_of(const Tags& tags) {
  std::map<std::string, std::string> options;
  const std::string lead = tag::kOption;
  for (const auto& [key, value] : tags) {
    if (!key.starts_with(lead) || key.find(':', lead.size()) != key.npos) continue;
    std::string text = value;
    for (int part = 1;; ++part) {
      const auto more = tags.find(fmt::format("{}:{}", key, part));
      if (more == tags.end()) break;
      text += more->second;
    }
    options[key.substr(lead.size())] = std::move(text);
  }
  return options;
}

std::string Fleet::tagged_head() const { return group ? value_of(group->tags, tag::kHead) : std::string(); }

bool Fleet::on_emr() const {
  const auto on = options.find("on");
  return on != options.end() && enum_value(kServiceNames, on->second) == Service::emr;
}

int Fleet::counted_workers() const {
  int count = 0;
  for (const Node* node : workers()) count += node->weight;
  return count;
}

const Node* Fleet::head() const {
  return !nodes.empty() && nodes.front().role == Role::head ? &nodes.front() : nullptr;
}

const Node* Fleet::find(std::string_view node) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const Node& one) { return one.name == node || one.instance_id == node; });
  return found == nodes.end() ? nullptr : &*found;
}

std::vector<const Node*> Fleet::workers() const {
  std::vector<const Node*> found;
  for (const Node& node : nodes) {
    if (node.role == Role::worker) found.push_back(&node);
  }
  return found;
}

void require_there(const Fleet& fleet, const net::AwsCalls& aws) {
  if (fleet.exists()) return;
  throw UsageError(
      fmt::format("there is no cluster {} in {}", fleet.name, aws.region()),
      fmt::format("dtrain cluster list setting 'all-regions' shows all that are there; dtrain cluster up {} creates it",
                  fleet.name));
}

std::vector<Node> read_nodes(net::AwsCalls& aws, std::vector<net::HttpField> filters) {
  filters.push_back(kPage);
  std::vector<Node> nodes;
  for (const net::Element& reservation : aws.query_all(net::kEc2, "DescribeInstances", filters, "reservationSet")) {
    for (const net::Element& instance : reservation.list("instancesSet")) nodes.push_back(node_of(instance));
  }
  return nodes;
}

Fleet read_fleet(net::AwsCalls& aws, const std::string& name) {
  Fleet fleet{.name = name, .group = read_group(aws, name)};
  read_templates(aws, fleet);
  const std::string own = std::string("tag:") + tag::kCluster;
  for (Node& node : read_nodes(aws, filtered({{own, name}})))
    (node.there() ? fleet.nodes : fleet.ending).push_back(std::move(node));
  std::sort(fleet.nodes.begin(), fleet.nodes.end(), comes_before);
  std::sort(fleet.ending.begin(), fleet.ending.end(), comes_before);
  if (fleet.group) fleet.options = options_of(fleet.group->tags);
  if (fleet.on_emr()) fleet.emr = find_emr(aws, name);
  if (fleet.emr) fleet.nodes = emr_nodes(aws, *fleet.emr);
  return fleet;
}

std::vector<Fleet> read_fleets(net::AwsCalls& aws) {
  std::map<std::string, Fleet> fleets;
  const auto fleet_of = [&](const Tags& tags) -> Fleet& {
    const std::string name = value_of(tags, tag::kCluster);
    fleets[name].name = name;
    return fleets[name];
  };
  const auto all = [&](const char* action, const char* list) {
    return aws.query_all(net::kEc2, action, filtered({{"tag-key", tag::kCluster}}), list);
  };
  for (const net::Element& reservation : all("DescribeInstances", "reservationSet")) {
    for (const net::Element& instance : reservation.list("instancesSet")) {
      Node node = node_of(instance);
      if (node.there()) fleet_of(node.tags).nodes.push_back(std::move(node));
    }
  }
  for (const net::Element& found : all("DescribeSecurityGroups", "securityGroupInfo")) {
    SecurityGroup group = group_of(found);
    Fleet& fleet = fleet_of(group.tags);
    fleet.options = options_of(group.tags);
    fleet.group = std::move(group);
  }
  for (const net::Element& found : all("DescribeLaunchTemplates", "launchTemplates")) {
    add_template(found, fleet_of(tags_of(found)));
  }
  std::vector<Fleet> sorted;
  for (auto& [name, fleet] : fleets) {
    std::sort(fleet.nodes.begin(), fleet.nodes.end(), comes_before);
    sorted.push_back(std::move(fleet));
  }
  return sorted;
}

Fleet with_known(Fleet fleet, const Fleet& known) {
  if (!fleet.group) fleet.group = known.group;
  if (!fleet.launch_template) fleet.launch_template = known.launch_template;
  if (!fleet.head_template) fleet.head_template = known.head_template;
  for (const Node& node : known.nodes) {
    const auto is_it = [&](const Node& one) { return one.instance_id == node.instance_id; };
    if (std::ranges::none_of(fleet.nodes, is_it) && std::ranges::none_of(fleet.ending, is_it)) {
      fleet.nodes.push_back(node);
    }
  }
  std::sort(fleet.nodes.begin(), fleet.nodes.end(), comes_before);
  if (fleet.options.empty()) fleet.options = known.options;
  return fleet;
}

Fleet read_fleet_with(net::AwsCalls& aws, const Fleet& known) {
  Fleet fleet;
  look_until(std::min<std::chrono::milliseconds>(kUntilVisible, aws.patience()), [&] {
    fleet = read_fleet(aws, known.name);
    const std::size_t shown = fleet.nodes.size();
    return with_known(fleet, known).nodes.size() == shown && (fleet.group || !known.group) &&
           (fleet.launch_template || !known.launch_template) && (fleet.head_template || !known.head_template);
  });
  return with_known(std::move(fleet), known);
}

std::vector<std::string> region_names(net::AwsCalls& aws) {
  std::vector<std::string> names;
  for (const net::Element& one : aws.query(net::kEc2, "DescribeRegions", {}).list("regionInfo")) {
    names.push_back(one.value("regionName"));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace dtrain::cluster
