// Who runs this program, as the system's list of users says: environment variables may lie about it.
#pragma once

#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::net::ssh {

struct LocalUser {
  std::string name;
  Path home;
};
// Never throws: an unknown user is called by number and lives in "/".
LocalUser local_user();

}  // namespace dtrain::net::ssh
