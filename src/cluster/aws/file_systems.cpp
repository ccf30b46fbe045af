#include "file_systems.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

#include "wait.hpp"

namespace dtrain::cluster {
namespace {

constexpr const char* kRoot = "/2015-02-01";
constexpr std::chrono::minutes kPatience{5};
// Other users of the account may have used a creation token.
constexpr int kMostTokens = 5;

std::string path_of(const std::string& rest) { return fmt::format("{}/{}", kRoot, rest); }

std::string text_of(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found && found->is_string() ? found->as_string() : std::string();
}

bool is_own(const Json& system, const std::string& cluster) {
  const Json* tags = system.find("Tags");
  if (!tags || !tags->is_array()) return false;
  return std::ranges::any_of(tags->as_array(), [&](const Json& one) {
    return text_of(one, "Key") == tag::kCluster && text_of(one, "Value") == cluster;
  });
}

FileSystem system_of(const Json& found, const std::string& cluster) {
  FileSystem system{
      .id = text_of(found, "FileSystemId"), .state = text_of(found, "LifeCycleState"), .own = is_own(found, cluster)};
  if (const Json* size = found.find("SizeInBytes"); size && size->is_object()) {
    if (const Json* value = size->find("Value"); value && value->is_number()) system.bytes = value->as_number();
  }
  return system;
}

FileSystem::MountTarget target_of(const Json& found) {
  return {text_of(found, "MountTargetId"), text_of(found, "SubnetId"), text_of(found, "AvailabilityZoneName"),
          text_of(found, "IpAddress"), text_of(found, "LifeCycleState")};
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
    const std::string next = text_of(page, "NextMarker");
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

std::vector<FileSystem> own_file_systems(net::AwsCalls& aws, const std::string& cluster) {
  std::vector<FileSystem> own;
  for (const Json& one : all_pages(aws, "file-systems", {}, "FileSystems")) {
    FileSystem system = system_of(one, cluster);
    if (!system.own) continue;
    system.mount_targets = targets_of(aws, system.id);
    own.push_back(std::move(system));
  }
  return own;
}

std::optional<FileSystem> find_file_system(net::AwsCalls& aws, const Spec& spec, const std::string& cluster) {
  const SharedKind kind = shared_kind(spec);
  if (kind == SharedKind::given_efs) return read_file_system(aws, spec.shared.substr(4), cluster);
  if (kind != SharedKind::new_efs) return std::nullopt;
  auto own = own_file_systems(aws, cluster);
  if (own.empty()) return std::nullopt;
  return std::move(own.front());
}

FileSystem create_file_system(net::AwsCalls& aws, const std::string& cluster, const Tags& tags) {
  for (int number = 0; number < kMostTokens; ++number) {
    const std::string token = number == 0 ? "dtrain-" + cluster : fmt::format("dtrain-{}-{}", cluster, number);
    try {
      FileSystem made = system_of(aws.rest(net::kEfs, "POST", path_of("file-systems"), {},
                                           Json::object({{"CreationToken", token},
                                                         {"PerformanceMode", "generalPurpose"},
                                                         {"Encrypted", true},
                                                         {"Tags", tag_list(tags)}})),
                                  cluster);
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
    if (!there.empty() && is_own(there.front(), cluster)) return system_of(there.front(), cluster);
  }
  throw RemoteError(
      fmt::format("the file system names dtrain-{0} to dtrain-{0}-{1} are taken by others", cluster, kMostTokens - 1),
      "choose another name for the cluster");
}

FileSystem::MountTarget create_mount_target(net::AwsCalls& aws, const FileSystem& system, const Subnet& subnet,
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

bool uses_group(net::AwsCalls& aws, const std::string& mount_target, const std::string& group) {
  const Json answer =
      aws.rest(net::kEfs, "GET", path_of(fmt::format("mount-targets/{}/security-groups", mount_target)));
  return std::ranges::any_of(answer.at("SecurityGroups").as_array(),
                             [&](const Json& one) { return one.as_string() == group; });
}

void delete_mount_target(net::AwsCalls& aws, const std::string& id) {
  aws.rest(net::kEfs, "DELETE", path_of("mount-targets/" + id));
}

void delete_file_system(net::AwsCalls& aws, const std::string& id) {
  aws.rest(net::kEfs, "DELETE", path_of("file-systems/" + id));
}

}  // namespace dtrain::cluster
