#include "boot.hpp"

namespace dtrain::cluster {
namespace {

SharedFolder shared_folder(const Wish& wish, const std::optional<FileSystem>& system) {
  const SharedKind kind = shared_kind(wish.spec);
  if (kind == SharedKind::none) return {};
  if (kind == SharedKind::path) return {.kind = SharedFolder::Kind::path, .folder = wish.spec.shared};
  return {.kind = SharedFolder::Kind::efs, .file_system = system ? system->id : "", .folder = wish.spec.mount};
}

Json texts_of(const std::map<std::string, std::string>& options) {
  Json texts = Json::object();
  for (const auto& [name, text] : options) texts[name] = text;
  return texts;
}

}  // namespace

std::string boot_script(const Wish& wish, const Account& account, NodeBoot::Role role, const std::string& head_address,
                        const std::optional<FileSystem>& system) {
  NodeBoot boot{.cluster = wish.name,
                .role = role,
                .head_address = head_address,
                .head_only = wish.spec.head_only,
                .bundle_sha256 = wish.bundle_sha256,
                .login = account.image.login,
                .region = account.region,
                .shared = shared_folder(wish, system),
                .prepare = wish.spec.prepare,
                .time_to_live = wish.spec.time_to_live,
                .autostop = wish.spec.autostop,
                .keep_failed = wish.spec.keep_failed,
                .spec = texts_of(wish.options)};
  return user_data(boot);
}

}  // namespace dtrain::cluster
