#include "user.hpp"

#include <pwd.h>
#include <unistd.h>

#include <vector>

namespace dtrain::net::ssh {

LocalUser local_user() {
  passwd entry{}, *found = nullptr;
  std::vector<char> text(16 << 10);
  if (::getpwuid_r(::getuid(), &entry, text.data(), text.size(), &found) != 0 || found == nullptr) {
    return {std::to_string(::getuid()), "/"};
  }
  return {found->pw_name, found->pw_dir};
}

}  // namespace dtrain::net::ssh
