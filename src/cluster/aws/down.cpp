#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/emr.hpp>

#include "ec2_fields.hpp"
#include "file_systems.hpp"
#include "head_role.hpp"
#include "resources.hpp"
#include "terminate.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

// The security group may stay in use for a while after the last instance is gone.
constexpr std::chrono::minutes kUntilUnused{5};

// Removes one resource: a resource that is gone counts as removed; one in use is retried for a while.
class Removal {
 public:
  Removal(const AwsContext& context, DownResult& result) : context_(context), result_(result) {}

  void remove(const std::string& kind, const std::string& id, const std::function<void()>& call,
              std::chrono::milliseconds patience = kUntilUnused) {
    const auto problem = attempt([&] { wait_until(patience, id, [&] { return is_removed(call); }); });
    if (problem) return result_.leftover.push_back({kind, id, last_ ? last_->what() : problem->what()});
    context_.say(fmt::format("removed {} {}", kind, id));
    result_.removed.push_back(id);
  }

 private:
  bool is_removed(const std::function<void()>& call) try {
    call();
    return true;
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem == net::AwsProblem::not_found) return true;
    if (problem.facts().problem != net::AwsProblem::in_use) throw;
    last_ = problem;
    return false;
  }

  const AwsContext& context_;
  DownResult& result_;
  std::optional<net::AwsError> last_;
};

// Whether it is the id of a resource that EC2 tags. IAM and EFS have calls of their own for that.
bool takes_tags(const std::string& id) {
  constexpr std::array kKinds{"i-", "sg-", "lt-", "key-", "pg-", "vol-", "eni-"};
  return std::ranges::any_of(kKinds, [&](const char* kind) { return id.starts_with(kind); });
}

// A service may list the tags of a removed resource for a while; without its tags, a sweep by tag finds only what
// exists.
void forget_tags(net::AwsCalls& aws, const std::vector<std::string>& gone) {
  for (const std::string& id : gone) {
    if (!takes_tags(id)) continue;
    try {
      aws.query(net::kEc2, "DeleteTags", {{"ResourceId.1", id}, {"Tag.1.Key", tag::kCluster}});
    } catch (const net::AwsError&) {
      // usually the resource is not known any more
    }
  }
}

void remove_by(const AwsContext& context, DownResult& result, const std::string& kind, const std::string& action,
               const std::string& field, const std::string& id) {
  Removal(context, result).remove(kind, id, [&] { context.aws.query(net::kEc2, action, {{field, id}}); });
}

void remove_mount_targets(const AwsContext& context, const FileSystem& system, const std::string& group,
                          DownResult& result) {
  std::vector<FileSystem::MountTarget> ours;
  for (const auto& target : system.mount_targets) {
    // What others made may have the group beside their own.
    if (system.own || groups_of_target(context.aws, target.id) == std::vector{group}) ours.push_back(target);
  }
  for (const auto& target : ours) {
    Removal(context, result).remove("mount target", target.id, [&] { delete_mount_target(context.aws, target.id); });
  }
  if (ours.empty()) return;
  wait_until(context.patience, fmt::format("the mount targets of {} are gone", system.id), [&] {
    const auto left = read_file_system(context.aws, system.id, {}).mount_targets;
    return std::ranges::none_of(left, [&](const auto& one) {
      return std::ranges::any_of(ours, [&](const auto& our) { return our.id == one.id; });
    });
  });
}

// nullopt: these keys may not read EFS.
std::optional<std::vector<FileSystem>> systems_if_allowed(net::AwsCalls& aws, const std::string& cluster) {
  try {
    return own_file_systems(aws, cluster);
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::denied) throw;
    return std::nullopt;
  }
}

// One that stays keeps the group of the cluster too, in which its network interface is.
void remove_lustre(const AwsContext& context, const FileSystem& system, bool delete_storage, DownResult& result) {
  if (!delete_storage) return result.kept.push_back({system.id, monthly_price(system)});
  Removal(context, result).remove("file system", system.id, [&] { delete_file_system(context.aws, system); });
  // Its network interface is in the group until it is gone.
  wait_until(context.patience, fmt::format("file system {} is gone", system.id),
             [&] { return !lustre_state(context.aws, system.id); });
}

void remove_storage(const AwsContext& context, const Fleet& fleet, bool delete_storage, DownResult& result) {
  const std::string group = fleet.group ? fleet.group->id : "";
  for (const FileSystem& system : lustre_of(context.aws, fleet)) {
    remove_lustre(context, system, delete_storage, result);
  }
  const Shared shared = shared_of(fleet.options);
  auto systems = systems_if_allowed(context.aws, fleet.name);
  if (!systems) {
    result.saw_all = false;
    if (shared.on_efs()) result.leftover.push_back({"file system", "efs", "these keys may not read EFS"});
    return;
  }
  if (shared.kind == SharedKind::given_efs) {
    if (auto given = file_system_if_there(context.aws, shared.id)) systems->push_back(*std::move(given));
  }
  for (const FileSystem& system : *systems) {
    remove_mount_targets(context, system, group, result);
    if (system.own && delete_storage) {
      Removal(context, result).remove("file system", system.id, [&] { delete_file_system(context.aws, system); });
    } else if (system.own) {
      result.kept.push_back({system.id, monthly_price(system)});
    }
  }
}

// nullopt: these keys may not read IAM.
std::optional<OwnRoles> roles_if_allowed(net::AwsCalls& aws, const std::string& cluster) {
  try {
    return own_roles(aws, cluster);
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::denied) throw;
    return std::nullopt;
  }
}

// A role that something else uses, such as a policy that a user attached, stays and is listed.
void remove_roles(const AwsContext& context, const Fleet& fleet, DownResult& result) {
  const auto own = roles_if_allowed(context.aws, fleet.name);
  if (!own) result.saw_all = false;
  const auto wanted = fleet.options.find("elastic-role");
  if (!own && wanted != fleet.options.end() && wanted->second == "own") {
    result.leftover.push_back({"role", role_name(context.aws.region(), fleet.name), "these keys may not read IAM"});
  }
  if (!own) return;
  for (const std::string& name : own->profiles) {
    Removal(context, result).remove("instance profile", name, [&] { remove_profile(context.aws, name); }, {});
  }
  for (const std::string& name : own->roles) {
    Removal(context, result).remove("role", name, [&] { remove_role(context.aws, name); }, {});
  }
}

// Names of placement groups and key pairs that carry the cluster's tag.
std::vector<std::string> tagged(net::AwsCalls& aws, const std::string& action, const std::string& list,
                                const std::string& key, const std::string& cluster) {
  std::vector<std::string> names;
  for (const net::Element& one :
       aws.query_all(net::kEc2, action, filtered({{std::string("tag:") + tag::kCluster, cluster}}), list)) {
    const Tags tags = tags_of(one);
    const auto found = tags.find(tag::kCluster);
    if (found != tags.end() && found->second == cluster) names.push_back(one.value(key));
  }
  return names;
}

// Kinds of resources that ids_there() lists completely.
bool is_looked_for(const std::string& kind) {
  constexpr std::array kKinds{"instance", "volume", "security-group", "launch-template", "key-pair"};
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

// The resources that exist, whatever tags say, except for terminating instances and their disks.
std::set<std::string> ids_there(net::AwsCalls& aws, const std::string& name) {
  const Fleet fleet = read_fleet(aws, name);
  std::set<std::string> ids;
  for (const Node& node : fleet.nodes) ids.insert(node.instance_id);
  if (fleet.group) ids.insert(fleet.group->id);
  for (const auto& one : {fleet.launch_template, fleet.head_template}) {
    if (one) ids.insert(one->id);
  }
  for (const std::string& id : tagged(aws, "DescribeKeyPairs", "keySet", "keyPairId", name)) ids.insert(id);
  const Fields own = filtered({{std::string("tag:") + tag::kCluster, name}});
  for (const net::Element& one : aws.query_all(net::kEc2, "DescribeVolumes", own, "volumeSet")) {
    if (one.value("status") == "available") ids.insert(one.value("volumeId"));
  }
  return ids;
}

// One part of `down`. Its failure is listed, and the other parts go on.
void do_part(DownResult& result, const std::string& kind, const std::string& id, const std::function<void()>& part) {
  if (const auto problem = attempt(part)) result.leftover.push_back({kind, id, problem->what()});
}

// Ends instances until AWS shows none that goes on, including those that start or show only now. Instances that were
// terminated earlier count too: the group is in use until they are gone.
class EndOfInstances {
 public:
  EndOfInstances(const AwsContext& context, const Fleet& known, DownResult& result)
      : context_(context), known_(known), result_(result), before_(result.instances) {}

  void run() {
    end(known_);
    wait_until(context_.patience, fmt::format("the instances of cluster {} are gone", known_.name), [this] {
      const Fleet fleet = read_fleet(context_.aws, known_.name);
      end(fleet);
      const auto stays = [this](const Node& one) { return is_adopted(one) || kept_.contains(one.instance_id); };
      return std::ranges::all_of(fleet.nodes, stays) &&
             std::ranges::all_of(fleet.ending, [](const Node& one) { return one.state == "terminated"; });
    });
  }

  bool any_kept() const { return !kept_.empty(); }

 private:
  // An instance that EC2 did not know at first, and shows now, is requested again.
  void end(const Fleet& fleet) {
    std::vector<std::string> ids, names;
    for (const Node& node : fleet.nodes) {
      // One that was given back may show its tags for a while.
      if (is_adopted(node) || kept_.contains(node.instance_id)) continue;
      ids.push_back(node.instance_id);
      if (!requested_.insert(node.instance_id).second) continue;
      names.push_back(node.named() ? fmt::format("{} ({})", node.name, node.instance_id) : node.instance_id);
    }
    if (!names.empty()) context_.say(fmt::format("ending {} instances: {}", names.size(), join(names, ", ")));
    for (const Refused& one : terminate(context_.aws, ids)) {
      kept_.insert(one.instance_id);
      result_.leftover.push_back({"instance", one.instance_id, fmt::format("{}: {}", one.why.what(), one.why.hint())});
    }
    result_.instances = before_ + static_cast<int>(requested_.size() - kept_.size());
  }

  const AwsContext& context_;
  const Fleet& known_;
  DownResult& result_;
  const int before_;  // instances that were ended otherwise
  std::set<std::string> requested_, kept_;
};

// Removes all of the resources with these ids.
void remove_all(const AwsContext& context, DownResult& result, const std::string& kind, const std::string& action,
                const std::string& field, const std::vector<std::string>& ids) {
  for (const std::string& id : ids) remove_by(context, result, kind, action, field, id);
}

// The ids that are tagged, with the one that is known before AWS shows its tags.
std::vector<std::string> and_known(std::vector<std::string> ids, const std::string& known) {
  if (!known.empty() && std::ranges::find(ids, known) == ids.end()) ids.push_back(known);
  return ids;
}

// The options say whether `up` made one. Without a security group nothing says it: an `up` may have failed before.
void remove_placement_groups(const AwsContext& context, const Fleet& fleet, DownResult& result) {
  const bool is_told = fleet.options.contains("placement");
  if (fleet.group && !is_told) return;
  std::vector<std::string> names;
  try {
    names = tagged(context.aws, "DescribePlacementGroups", "placementGroupSet", "groupName", fleet.name);
  } catch (const net::AwsError& problem) {
    if (is_told || problem.facts().problem != net::AwsProblem::denied) throw;
  }
  remove_all(context, result, "placement group", "DeletePlacementGroup", "GroupName", names);
}

bool is_listed(const DownResult& result, const std::string& id) {
  return std::ranges::any_of(result.kept, [&](const Kept& one) { return one.file_system == id; }) ||
         std::ranges::any_of(result.leftover, [&](const Leftover& one) { return one.id == id; }) ||
         std::ranges::find(result.removed, id) != result.removed.end();
}

void remove_groups(const AwsContext& context, const Fleet& fleet, bool in_use, DownResult& result) {
  const auto ids = and_known(tagged(context.aws, "DescribeSecurityGroups", "securityGroupInfo", "groupId", fleet.name),
                             fleet.group ? fleet.group->id : "");
  if (!in_use) return remove_all(context, result, "security group", "DeleteSecurityGroup", "GroupId", ids);
  for (const std::string& id : ids) {
    result.leftover.push_back({"security group", id, "what could not be removed, or is kept, uses it"});
  }
}

}  // namespace

DownResult bring_down(const AwsContext& context, const Fleet& known, bool delete_storage) {
  DownResult result;
  Fleet fleet = with_known(read_fleet(context.aws, known.name), known);
  const std::string& name = known.name;
  while (fleet.emr) {  // a second one is found once the first has ended
    result.instances += static_cast<int>(fleet.nodes.size());
    end_emr(context, *fleet.emr);
    fleet = read_fleet(context.aws, name);
  }
  // Without the template, no further instance can start while the instances end.
  do_part(result, "launch templates", name, [&] {
    auto ids = tagged(context.aws, "DescribeLaunchTemplates", "launchTemplates", "launchTemplateId", name);
    for (const auto& one : {fleet.launch_template, fleet.head_template}) {
      ids = and_known(std::move(ids), one ? one->id : "");
    }
    remove_all(context, result, "launch template", "DeleteLaunchTemplate", "LaunchTemplateId", ids);
  });
  EndOfInstances instances(context, fleet, result);
  instances.run();
  do_part(result, "storage", name, [&] { remove_storage(context, fleet, delete_storage, result); });
  do_part(result, "placement groups", name, [&] { remove_placement_groups(context, fleet, result); });
  do_part(result, "key pairs", name, [&] {
    remove_all(context, result, "key pair", "DeleteKeyPair", "KeyName",
               tagged(context.aws, "DescribeKeyPairs", "keySet", "keyName", name));
  });
  // The group is removed last: its tags hold the state of the cluster.
  do_part(result, "security groups", name, [&] {
    const bool in_use = instances.any_kept() || (!delete_storage && !lustre_of(context.aws, fleet).empty());
    remove_groups(context, fleet, in_use, result);
  });
  forget_tags(context.aws, result.removed);
  do_part(result, "roles", name, [&] { remove_roles(context, fleet, result); });
  do_part(result, "cluster", name, [&] {
    for (Leftover& left : sweep(context.aws, name)) {
      if (!is_listed(result, left.id)) result.leftover.push_back(std::move(left));
    }
  });
  return result;
}

std::vector<Leftover> sweep(net::AwsCalls& aws, const std::string& name) {
  std::vector<Leftover> left;
  std::vector<std::string> gone;
  const std::set<std::string> there = ids_there(aws, name);
  const Fields fields = filtered({{"key", tag::kCluster}, {"value", name}});
  for (const net::Element& one : aws.query_all(net::kEc2, "DescribeTags", fields, "tagSet")) {
    const std::string kind = one.value("resourceType"), id = one.value("resourceId");
    if (there.contains(id) || !is_looked_for(kind)) {
      left.push_back({kind, id, "it still carries the cluster's tag"});
    } else if (kind != "instance") {
      gone.push_back(id);
    }
  }
  forget_tags(aws, gone);
  for (const FileSystem& system : systems_if_allowed(aws, name).value_or(std::vector<FileSystem>())) {
    left.push_back({"file system", system.id, "it is kept"});
  }
  const OwnRoles roles = roles_if_allowed(aws, name).value_or(OwnRoles{});
  for (const std::string& profile : roles.profiles) left.push_back({"instance profile", profile, "it is there"});
  for (const std::string& role : roles.roles) left.push_back({"role", role, "it is there"});
  return left;
}

}  // namespace dtrain::cluster
