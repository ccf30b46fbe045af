#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/node.hpp>

namespace dtrain::cluster {

void become_login_user(const std::string& login) {
  if (::geteuid() != 0) return;
  const passwd* user = ::getpwnam(login.c_str());
  if (!user) return;
  if (user->pw_uid != 0 &&
      (::initgroups(user->pw_name, user->pw_gid) != 0 || ::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0)) {
    throw Error(fmt::format("cannot become user {}: {}", login, std::strerror(errno)));
  }
  ::setenv("HOME", user->pw_dir, 1);
  ::setenv("USER", user->pw_name, 1);
}

}  // namespace dtrain::cluster
