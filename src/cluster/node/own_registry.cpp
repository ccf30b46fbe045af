#include "own_registry.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <dtrain/base/error.hpp>

namespace dtrain::cluster {

void publish_registry(const Path& folder, const std::string& login, const launcher::AgentRegistry& registry) {
  const Path file = folder / "registry.json";
  launcher::write_agent_registry(file, registry);
  const passwd* user = ::getpwnam(login.c_str());
  if (user && ::chown(file.c_str(), user->pw_uid, user->pw_gid) != 0) {
    throw Error(fmt::format("cannot give {} to {}", file.string(), login));
  }
}

}  // namespace dtrain::cluster
