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
// Time in which IAM notices everywhere that a role has no policy and no profile any more.
constexpr std::chrono::seconds kUntilIamAgrees{30};

// One part of `down`. Its failure is listed, and the other parts go on. Returns false after a failure.
bool do_part(DownResult& result, const std::string& kind, const std::string& id, const std::function<void()>& part) {
  const auto problem = attempt(part);
  if (problem) result.leftover.push_back({kind, id, problem->what()});
  return !problem;
}

// Removes one resource: a resource that is gone counts as removed; one in use is retried for a while.
class Removal {
 public:
  Removal(const AwsContext& context, DownResult& result) : context_(context), result_(result) {}

  // Returns false for a resource that stays, which is listed.
  bool remove(const std::string& kind, const std::string& id, const std::function<void()>& call,
              std::chrono::milliseconds patience = kUntilUnused) {
    patience = std::min<std::chrono::milliseconds>(patience, context_.patience);
    const auto problem = attempt([&] { wait_until(patience, id, [&] { return is_removed(call); }); });
    if (problem) {
      result_.leftover.push_back({kind, id, last_ ? last_->what() : problem->what()});
      return false;
    }
    context_.say(fmt::format("removed {} {}", kind, id));
    result_.removed.push_back(id);
    return true;
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

// Removes all of the resources with these ids.
void remove_all(const AwsContext& context, DownResult& result, const std::string& kind, const std::string& action,
                const std::string& field, const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    Removal(context, result).remove(kind, id, [&] { context.aws.query(net::kEc2, action, {{field, id}}); });
  }
}

// nullopt: these keys have no right to read it.
template <typename Read>
auto if_allowed(const Read& read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::denied) throw;
    return std::nullopt;
  }
}

// Removes the cluster's file systems, or its mount targets alone. Their network interfaces are in the security group of
// the cluster until they are gone, which takes minutes once a service has accepted the removal.
class StorageRemoval {
 public:
  StorageRemoval(const AwsContext& context, const Fleet& fleet, bool delete_storage, DownResult& result)
      : context_(context), fleet_(fleet), delete_storage_(delete_storage), result_(result) {}

  // Returns whether the group stays in use. File systems that cannot be listed use it where the options have some.
  bool run() {
    const Shared shared = shared_of(fleet_.options);
    const bool saw_lustre = do_part(result_, "storage", fleet_.name, [&] {
      for (const FileSystem& system : lustre_of(context_.aws, fleet_)) remove_lustre(system);
    });
    const bool saw_efs = do_part(result_, "storage", fleet_.name, [&] { remove_all_efs(shared); });
    return in_use_ || (!saw_lustre && shared.on_lustre()) || (!saw_efs && shared.on_efs());
  }

 private:
  bool remove(const FileSystem& system) {
    const auto call = [&] { delete_file_system(context_.aws, system); };
    return Removal(context_, result_).remove("file system", system.id, call);
  }

  void keep(const FileSystem& system) { result_.kept.push_back({system.id, monthly_price(system)}); }

  void remove_lustre(const FileSystem& system) {
    if (!delete_storage_) keep(system);
    const bool is_gone = delete_storage_ && remove(system) && do_part(result_, "file system", system.id, [&] {
                           wait_until(context_.patience, fmt::format("file system {} is gone", system.id),
                                      [&] { return !lustre_state(context_.aws, system.id); });
                         });
    if (!is_gone) in_use_ = true;
  }

  void remove_all_efs(const Shared& shared) {
    auto systems = if_allowed([&] { return own_file_systems(context_.aws, fleet_.name); });
    if (!systems) {
      result_.saw_all = false;
      if (!shared.on_efs()) return;
      in_use_ = true;
      return result_.leftover.push_back({"file system", "efs", "these keys may not read EFS"});
    }
    if (shared.kind == SharedKind::given_efs) {
      if (auto given = file_system_if_there(context_.aws, shared.id)) systems->push_back(*std::move(given));
    }
    for (const FileSystem& system : *systems) remove_efs(system);
  }

  void remove_efs(const FileSystem& system) {
    bool is_free = false;
    do_part(result_, "mount targets", system.id, [&] { is_free = remove_mount_targets(system); });
    if (!is_free) in_use_ = true;
    if (!system.own) return;
    if (!delete_storage_) return keep(system);
    if (is_free) {
      remove(system);
    } else {
      result_.leftover.push_back({"file system", system.id, "it still has mount targets"});
    }
  }

  // Returns false if any of them stays.
  bool remove_mount_targets(const FileSystem& system) {
    const std::string group = fleet_.group ? fleet_.group->id : "";
    std::size_t ours = 0;
    std::set<std::string> going;
    for (const auto& target : system.mount_targets) {
      // What others made may have the group beside their own.
      if (!system.own && groups_of_target(context_.aws, target.id) != std::vector{group}) continue;
      const auto call = [&] { delete_mount_target(context_.aws, target.id); };
      ++ours;
      if (Removal(context_, result_).remove("mount target", target.id, call)) going.insert(target.id);
    }
    if (going.empty()) return ours == 0;
    wait_until(context_.patience, fmt::format("the mount targets of {} are gone", system.id), [&] {
      const auto left = read_file_system(context_.aws, system.id, {}).mount_targets;
      return std::ranges::none_of(left, [&](const auto& one) { return going.contains(one.id); });
    });
    return going.size() == ours;
  }

  const AwsContext& context_;
  const Fleet& fleet_;
  const bool delete_storage_;
  DownResult& result_;
  bool in_use_ = false;
};

// A role that something else uses, such as a policy that a user attached, stays and is listed.
void remove_roles(const AwsContext& context, const Fleet& fleet, DownResult& result) {
  const auto own = if_allowed([&] { return own_roles(context.aws, fleet.name); });
  if (!own) result.saw_all = false;
  const auto wanted = fleet.options.find("elastic-role");
  if (!own && wanted != fleet.options.end() && wanted->second == "own") {
    result.leftover.push_back({"role", role_name(context.aws.region(), fleet.name), "these keys may not read IAM"});
  }
  if (!own) return;
  const auto remove = [&](const char* kind, const std::string& name, const std::function<void()>& call) {
    Removal(context, result).remove(kind, name, call, kUntilIamAgrees);
  };
  for (const std::string& name : own->profiles) {
    remove("instance profile", name, [&] { remove_profile(context.aws, name); });
  }
  for (const std::string& name : own->roles) remove("role", name, [&] { remove_role(context.aws, name); });
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
    for (const Refused& one : terminate_allowed(context_.aws, ids)) {
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
  const bool in_use = StorageRemoval(context, fleet, delete_storage, result).run() || instances.any_kept();
  do_part(result, "placement groups", name, [&] { remove_placement_groups(context, fleet, result); });
  do_part(result, "key pairs", name, [&] {
    remove_all(context, result, "key pair", "DeleteKeyPair", "KeyName",
               tagged(context.aws, "DescribeKeyPairs", "keySet", "keyName", name));
  });
  // The group is removed last: its tags hold the state of the cluster.
  do_part(result, "security groups", name, [&] { remove_groups(context, fleet, in_use, result); });
  forget_tags(context.aws, result.removed);
  do_part(result, "roles", name, [&] { remove_roles(context, fleet, result); });
  do_part(result, "cluster", name, [&] {
    for (Leftover& left : sweep(context.aws, fleet)) {
      if (!is_listed(result, left.id)) result.leftover.push_back(std::move(left));
    }
  });
  return result;
}

std::vector<Leftover> sweep(net::AwsCalls& aws, const Fleet& known) {
  const std::string& name = known.name;
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
  for (const auto& systems :
       {if_allowed([&] { return own_file_systems(aws, name); }), if_allowed([&] { return lustre_of(aws, known); })}) {
    for (const FileSystem& one : systems.value_or(std::vector<FileSystem>())) {
      left.push_back({"file system", one.id, "it is kept"});
    }
  }
  const OwnRoles roles = if_allowed([&] { return own_roles(aws, name); }).value_or(OwnRoles{});
  for (const std::string& profile : roles.profiles) left.push_back({"instance profile", profile, "it is there"});
  for (const std::string& role : roles.roles) left.push_back({"role", role, "it is there"});
  return left;
}

}  // namespace dtrain::cluster
