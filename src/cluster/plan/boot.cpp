#include "boot.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {
namespace {

// EC2 allows 50 tags. The group has others: cluster, owner, name, admission, rules, launches, last node, head, wish,
// healer, spent, prices, stopped, up, and the events.
constexpr std::size_t kTagsOfGroup = 50, kOwnTags = 14 + kKeptEvents;

// A node of a zone without a mount target mounts the file system by that of another zone.
std::string first_mount_target(const std::optional<FileSystem>& system) {
  return system && !system->mount_targets.empty() ? system->mount_targets.front().address : "";
}

SharedFolder shared_folder(const ClusterRequest& request, const std::optional<FileSystem>& system) {
  const Shared shared = shared_of(request.spec.shared);
  if (shared.kind == SharedKind::none) return {};
  if (shared.kind == SharedKind::path) return {.kind = SharedFolder::Kind::path, .folder = request.spec.shared};
  return {.kind = shared.on_lustre() ? SharedFolder::Kind::lustre : SharedFolder::Kind::efs,
          .file_system = system ? system->id : "",
          .mount_name = system ? system->mount_name : "",
          .mount_target = first_mount_target(system),
          .folder = request.spec.mount};
}

Json texts_of(const std::map<std::string, std::string>& options) {
  Json texts = Json::object();
  for (const auto& [name, text] : options) texts[name] = text;
  return texts;
}

}  // namespace

std::string boot_script(const ClusterRequest& request, const Account& account, NodeBoot::Role role,
                        const std::string& head_address, const std::optional<FileSystem>& system, bool adopted) {
  NodeBoot boot{.cluster = request.name,
                .role = role,
                .head_address = head_address,
                .head_only = request.spec.head_only,
                .admission = request.admission,
                .bundle_sha256 = request.bundle_sha256,
                .login = account.image.login,
                .region = account.region,
                .shared = shared_folder(request, system),
                .prepare = request.spec.prepare,
                .time_to_live = request.spec.time_to_live,
                .autostop = request.spec.autostop,
                .heal = request.spec.heal,
                .replace_head_after =
                    workers_replace_head(request.spec) ? request.spec.replace_head_after : std::chrono::seconds(0),
                .keep_failed = request.spec.keep_failed,
                .adopted = adopted,
                .spec = texts_of(request.options)};
  return user_data(boot);
}

void check_request(const ClusterRequest& request, const Account& account) {
  if (request.spec.on == Service::emr) return;
  check_tags_of_services(request.spec);
  // Placeholders of the length of the real values, which are known only later.
  const FileSystem system{
      .id = "fs-0123456789abcdef0", .mount_name = "12345678", .mount_targets = {{.address = "255.255.255.255"}}};
  ClusterRequest known = request;
  known.admission = request.bundle_sha256;
  boot_script(known, account, NodeBoot::Role::head, {}, system);
  boot_script(known, account, NodeBoot::Role::worker, "255.255.255.255", system);
  const std::size_t tags = option_tags(request.options).size(), room = kTagsOfGroup - kOwnTags - account.tags.size();
  if (tags <= room) return;
  throw UsageError(
      fmt::format("the options of cluster {} take {} tags of its security group, and EC2 leaves room for {}{}",
                  request.name, tags, room,
                  account.tags.empty() ? "" : fmt::format(" beside {} of setting 'tag'", account.tags.size())),
      "put what setting 'prepare' runs into a file of the shared folder, and give its path");
}

}  // namespace dtrain::cluster
