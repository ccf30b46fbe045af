#include "file_systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/cluster/regions.hpp>

#include "parallel.hpp"
#include "resources.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

constexpr const char* kRoot = "/2015-02-01";
constexpr std::chrono::minutes kPatience{5};
// Other users of the account may have used a creation token.
constexpr int kMostTokens = 5;

std::string path_of(const std::string& rest) { return fmt::format("{}/{}", kRoot, rest); }

// Empty: it has no such tag.
std::string tag_of(const Json& system, const char* key) {
  const Json* tags = system.find("Tags");
  if (!tags || !tags->is_array()) return {};
  for (const Json& one : tags->as_array()) {
    if (one.find_text("Key") == key) return one.find_text("Value");
  }
  return {};
}

bool is_own(const Json& system, const std::string& cluster) {
  return !cluster.empty() && tag_of(system, tag::kCluster) == cluster;
}

FileSystem system_of(const Json& found, const std::string& cluster) {
  FileSystem system{.id = found.find_text("FileSystemId"),
                    .state = found.find_text("LifeCycleState"),
                    .own = is_own(found, cluster),
                    .group = tag_of(found, tag::kGroup)};
  if (const Json* size = found.find("SizeInBytes"); size && size->is_object()) {
    if (const Json* value = size->find("Value"); value && value->is_number()) system.bytes = value->as_number();
  }
  return system;
}

// Its creation token stays taken, and its tags are still there.
bool is_being_deleted(const FileSystem& system) { return system.state == "deleting" || system.state == "deleted"; }

FileSystem::MountTarget target_of(const Json& found) {
  return {found.find_text("MountTargetId"), found.find_text("SubnetId"), found.find_text("AvailabilityZoneName"),
          found.find_text("IpAddress"), found.find_text("LifeCycleState")};
}

std::vector<Json> all_pages(net::AwsCalls& aws, const std::string& what, std::vector<net::HttpField> query,
                            const char* list) {
  std::vector<Json> all;
  const std::size_t fixed = query.size();
  const std::string call = fmt::format("{} GET {}", net::kEfs.name, path_of(what));
  net::Pages pages(aws, call);
  while (true) {
    const Json page = aws.rest(net::kEfs, "GET", path_of(what), query);
    net::read_answer(call, [&] {
      for (const Json& one : page.at(list).as_array()) all.push_back(one);
    });
    const std::string next = page.find_text("NextMarker");
    if (next.empty()) return all;
    pages.turn(next);
    query.resize(fixed);
    query.emplace_back("Marker", next);
  }
}

std::vector<FileSystem::MountTarget> targets_of(net::AwsCalls& aws, const std::string& system) {
  std::vector<FileSystem::MountTarget> targets;
  for (const Json& one : all_pages(aws, "mount-targets", {{"FileSystemId", system}}, "MountTargets")) {
    targets.push_back(target_of(one));
  }
  return targets;
}

FileSystem lustre_of(const Json& found, const std::string& cluster) {
  constexpr double kBytesOfAGigabyte = 1e9;
  FileSystem system{.id = found.find_text("FileSystemId"),
                    .state = found.find_text("Lifecycle"),
                    .own = is_own(found, cluster),
                    .lustre = true,
                    .group = tag_of(found, tag::kGroup)};
  if (const Json* size = found.find("StorageCapacity"); size && size->is_number()) {
    system.bytes = size->as_number() * kBytesOfAGigabyte;
  }
  if (const Json* own = found.find("LustreConfiguration"); own && own->is_object()) {
    system.mount_name = own->find_text("MountName");
  }
  return system;
}

// `id` empty: all of the region.
std::vector<FileSystem> lustre_systems(net::AwsCalls& aws, const std::string& id, const std::string& cluster) {
  std::vector<FileSystem> all;
  const std::string call = "fsx DescribeFileSystems";
  net::Pages pages(aws, call);
  Json asked = Json::object();
  if (!id.empty()) asked["FileSystemIds"] = Json::array({id});
  while (true) {
    const Json page = aws.json(net::kFsx, "DescribeFileSystems", asked);
    net::read_answer(call, [&] {
      for (const Json& one : page.at("FileSystems").as_array()) {
        if (one.find_text("FileSystemType") == "LUSTRE") all.push_back(lustre_of(one, cluster));
      }
    });
    const std::string next = page.find_text("NextToken");
    if (next.empty()) return all;
    pages.turn(next);
    asked["NextToken"] = next;
  }
}

FileSystem read_lustre(net::AwsCalls& aws, const std::string& id, const std::string& cluster) {
  std::vector<FileSystem> found;
  try {
    found = lustre_systems(aws, id, cluster);
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::not_found) throw;
  }
  if (found.empty()) {
    throw UsageError(fmt::format("region {} has no file system {} of FSx for Lustre", aws.region(), id),
                     "aws fsx describe-file-systems lists those that it has");
  }
  return std::move(found.front());
}

Json tag_list(const Tags& tags) {
  Json list = Json::array();
  for (const auto& [key, value] : tags) list.push_back(Json::object({{"Key", key}, {"Value", value}}));
  return list;
}

}  // namespace

FileSystem read_file_system(net::AwsCalls& aws, const std::string& id, const std::string& cluster) {
  const auto found = all_pages(aws, "file-systems", {{"FileSystemId", id}}, "FileSystems");
  if (found.empty()) throw UsageError(fmt::format("there is no file system {}", id), "file systems belong to a region");
  FileSystem system = system_of(found.front(), cluster);
  system.mount_targets = targets_of(aws, id);
  return system;
}

std::optional<FileSystem> file_system_if_there(net::AwsCalls& aws, const std::string& id) {
  try {
    return read_file_system(aws, id, {});
  } catch (const UsageError&) {
    return std::nullopt;
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::not_found) throw;
    return std::nullopt;
  }
}

std::vector<FileSystem> own_file_systems(net::AwsCalls& aws, const std::string& cluster) {
  std::vector<FileSystem> own;
  for (const Json& one : all_pages(aws, "file-systems", {}, "FileSystems")) {
    FileSystem system = system_of(one, cluster);
    if (!system.own || is_being_deleted(system)) continue;
    system.mount_targets = targets_of(aws, system.id);
    own.push_back(std::move(system));
  }
  return own;
}

std::optional<FileSystem> find_file_system(net::AwsCalls& aws, const Spec& spec, const std::string& cluster) {
  const Shared shared = shared_of(spec.shared);
  if (shared.kind == SharedKind::given_efs) return read_file_system(aws, shared.id, cluster);
  if (shared.kind == SharedKind::given_lustre) {
    FileSystem system = read_lustre(aws, shared.id, cluster);
    if (system.state == "AVAILABLE" || system.state == "UPDATING") return system;
    throw UsageError(fmt::format("file system {} is in state {}", system.id, system.state),
                     "give one that is available");
  }
  if (!shared.on_efs() && !shared.on_lustre()) return std::nullopt;
  auto own = shared.on_efs() ? own_file_systems(aws, cluster) : own_lustre(aws, cluster);
  if (own.empty()) return std::nullopt;
  return std::move(own.front());
}

// `up` deletes what it made for a group that it gives up, and nothing that was there before.
static Tags tags_of_storage(const std::string& cluster, const Account& account, const std::string& group) {
  Tags tags = common_tags(cluster, account);
  tags.insert({{tag::kName, "dtrain-" + cluster}, {tag::kGroup, group}});
  return tags;
}

FileSystem make_efs(net::AwsCalls& aws, const std::string& cluster, const Account& account, const std::string& group) {
  for (int number = 0; number < kMostTokens; ++number) {
    const std::string token = number == 0 ? "dtrain-" + cluster : fmt::format("dtrain-{}-{}", cluster, number);
    Json order = Json::object({{"CreationToken", token},
                               {"PerformanceMode", "generalPurpose"},
                               {"Encrypted", true},
                               {"Tags", tag_list(tags_of_storage(cluster, account, group))}});
    if (!account.kms_key.empty()) order["KmsKeyId"] = account.kms_key;
    try {
      FileSystem made = system_of(aws.rest(net::kEfs, "POST", path_of("file-systems"), {}, order), cluster);
      aws.created(made.id);
      return made;
    } catch (const net::AwsError& problem) {
      if (problem.facts().problem != net::AwsProblem::exists) throw;
    }
    const auto there = look_until(kUntilVisible, [&]() -> std::optional<std::vector<Json>> {
                         auto found = all_pages(aws, "file-systems", {{"CreationToken", token}}, "FileSystems");
                         if (found.empty()) return std::nullopt;
                         return found;
                       }).value_or(std::vector<Json>{});
    if (there.empty()) continue;
    FileSystem system = system_of(there.front(), cluster);
    if (system.own && !is_being_deleted(system)) return system;
  }
  throw RemoteError(
      fmt::format("the file system names dtrain-{0} to dtrain-{0}-{1} are taken by others, or by file systems that are "
                  "being deleted",
                  cluster, kMostTokens - 1),
      "choose another name for the cluster, or try again in a few minutes");
}

// A mount target that exists in the zone is returned.
static FileSystem::MountTarget create_mount_target(net::AwsCalls& aws, const FileSystem& system, const Subnet& subnet,
                                                   const std::string& group) {
  const Json body =
      Json::object({{"FileSystemId", system.id}, {"SubnetId", subnet.id}, {"SecurityGroups", Json::array({group})}});
  std::optional<FileSystem::MountTarget> made;
  wait_until(kPatience, fmt::format("file system {} takes a mount target", system.id), [&] {
    try {
      made = target_of(aws.rest(net::kEfs, "POST", path_of("mount-targets"), {}, body));
    } catch (const net::AwsError& problem) {
      if (problem.facts().problem == net::AwsProblem::in_use) return false;  // the file system is still being created
      if (problem.facts().problem != net::AwsProblem::exists) throw;
      for (const auto& one : targets_of(aws, system.id)) {
        if (one.subnet_id == subnet.id || one.zone == subnet.zone) made = one;
      }
    }
    return made.has_value();
  });
  if (made->zone.empty()) made->zone = subnet.zone;
  return *made;
}

void make_mount_targets(const AwsContext& context, FileSystem& system, const Account& account, const Fleet& fleet) {
  Mutex mutex;
  std::vector<std::function<void()>> pieces;
  for (const Subnet& subnet : account.subnets) {
    const auto is_in = [&](const auto& one) { return one.zone == subnet.zone; };
    if (std::ranges::none_of(fleet.nodes, is_in) || std::ranges::any_of(system.mount_targets, is_in)) continue;
    pieces.push_back([&] {
      const auto made = create_mount_target(context.aws, system, subnet, fleet.group->id);
      context.say(fmt::format("mount target {} in {}", made.id, made.zone));
      const MutexLock lock(mutex);
      system.mount_targets.push_back(made);
    });
  }
  do_all(pieces);
}

static std::string groups_path(const std::string& mount_target) {
  return path_of(fmt::format("mount-targets/{}/security-groups", mount_target));
}

std::vector<std::string> groups_of_target(net::AwsCalls& aws, const std::string& mount_target) {
  const Json answer = aws.rest(net::kEfs, "GET", groups_path(mount_target));
  std::vector<std::string> groups;
  for (const Json& one : answer.at("SecurityGroups").as_array()) groups.push_back(one.as_string());
  return groups;
}

void set_groups_of_target(net::AwsCalls& aws, const std::string& mount_target, const std::vector<std::string>& groups) {
  aws.rest(net::kEfs, "PUT", groups_path(mount_target), {}, Json::object({{"SecurityGroups", json_texts(groups)}}));
}

void delete_mount_target(net::AwsCalls& aws, const std::string& id) {
  aws.rest(net::kEfs, "DELETE", path_of("mount-targets/" + id));
}

std::vector<FileSystem> own_lustre(net::AwsCalls& aws, const std::string& cluster) {
  std::vector<FileSystem> all = lustre_systems(aws, {}, cluster);
  std::erase_if(all, [](const FileSystem& one) { return !one.own || one.state == "DELETING"; });
  return all;
}

// Without a group, nothing says whether the cluster had one: then a call that fails counts as none.
std::vector<FileSystem> lustre_of(net::AwsCalls& aws, const Fleet& fleet) {
  if (fleet.group && !shared_of(fleet.options).on_lustre()) return {};
  try {
    return own_lustre(aws, fleet.name);
  } catch (const net::AwsError&) {
    if (fleet.group) throw;
    return {};
  }
}

bool has_empty_storage(net::AwsCalls& aws, const Fleet& fleet) {
  const auto is_nothing = [&](const FileSystem& one) { return is_empty(one, fleet); };
  return std::ranges::all_of(lustre_of(aws, fleet), is_nothing) &&
         std::ranges::all_of(own_file_systems(aws, fleet.name), is_nothing);
}

bool may_delete_storage(net::AwsCalls& aws, Fleet begun, const ClusterRequest& request) {
  begun.options = request.options;
  bool may = false;
  std::ignore = attempt([&] { may = has_empty_storage(aws, begun); });
  return may;
}

// The token is that of the security group, so a repeated call makes no second one, and a later cluster of this name
// makes its own.
FileSystem make_lustre(net::AwsCalls& aws, const ClusterRequest& order, const Account& account,
                       const std::string& group, std::chrono::milliseconds patience) {
  const std::string& cluster = order.name;
  const std::vector<Pool> pools = head_pools(order.spec, account);
  Json request = Json::object(
      {{"ClientRequestToken", "dtrain-" + group},
       {"FileSystemType", "LUSTRE"},
       {"FileSystemTypeVersion", "2.15"},
       {"StorageCapacity", lustre_gb(order.spec)},
       {"SubnetIds", Json::array({pools.empty() ? account.subnets.front().id : pools.front().subnet_id})},
       {"SecurityGroupIds", Json::array({group})},
       {"Tags", tag_list(tags_of_storage(cluster, account, group))},
       {"LustreConfiguration", Json::object({{"DeploymentType", "PERSISTENT_2"}, {"PerUnitStorageThroughput", 125}})}});
  if (!account.kms_key.empty()) request["KmsKeyId"] = account.kms_key;
  const Json answer = aws.json(net::kFsx, "CreateFileSystem", request);
  FileSystem made =
      net::read_answer("fsx CreateFileSystem", [&] { return lustre_of(answer.at("FileSystem"), cluster); });
  aws.created(made.id);
  if (!made.mount_name.empty()) return made;
  wait_until(patience, fmt::format("file system {} has a name to be mounted by", made.id), [&] {
    made = read_lustre(aws, made.id, cluster);
    return !made.mount_name.empty();
  });
  return made;
}

std::optional<std::string> lustre_state(net::AwsCalls& aws, const std::string& id) try {
  const auto found = lustre_systems(aws, id, {});
  if (found.empty()) return std::nullopt;
  return found.front().state;
} catch (const net::AwsError& problem) {
  if (problem.facts().problem != net::AwsProblem::not_found) throw;
  return std::nullopt;
}

void wait_for_lustre(net::AwsCalls& aws, const std::string& id, std::chrono::milliseconds patience,
                     const std::function<void()>& meanwhile) {
  wait_until(patience, fmt::format("file system {} is available", id), [&] {
    meanwhile();
    const std::string state = read_lustre(aws, id, {}).state;
    if (state == "FAILED" || state == "MISCONFIGURED" || state == "DELETING") {
      throw RemoteError(fmt::format("file system {} is in state {}: FSx could not make it", id, state),
                        fmt::format("aws fsx describe-file-systems --file-system-ids {} says why", id));
    }
    return state == "AVAILABLE";
  });
}

void delete_file_system(net::AwsCalls& aws, const FileSystem& system) {
  if (system.lustre) {
    aws.json(net::kFsx, "DeleteFileSystem", Json::object({{"FileSystemId", system.id}}));
  } else {
    aws.rest(net::kEfs, "DELETE", path_of("file-systems/" + system.id));
  }
}

}  // namespace dtrain::cluster
