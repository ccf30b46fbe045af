// ssh(1) as this program would connect: the same keys and known hosts, whatever home the account database names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace dtrain::cli {

std::vector<std::string> options_of_ssh(const std::string& cluster);

// A port of this machine that leads to the same port of the head, by an ssh of its own. It ends with this object.
class Tunnel {
 public:
  Tunnel(const std::string& cluster, const std::string& login, std::uint16_t port);  // login: user@address
  ~Tunnel();
  Tunnel(const Tunnel&) = delete;

 private:
  pid_t process_ = 0;
};

}  // namespace dtrain::cli
