// ssh(1) as this program would connect: the same keys and known hosts, whatever home the account database names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include <dtrain/base/reporter.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::cli {

std::vector<std::string> options_of_ssh(const std::string& cluster);
// "-p", "2222", "-o", "HostKeyAlias=...", "user@host": what follows the options.
std::vector<std::string> words_of_target(const net::SshTarget& target);

// A port of this machine that leads to the same port of the head, by an ssh of its own. It ends with this object.
class Tunnel {
 public:
  Tunnel(const std::string& cluster, const net::SshTarget& head, std::uint16_t port);
  ~Tunnel();
  Tunnel(const Tunnel&) = delete;

 private:
  pid_t process_ = 0;
};

// The end of --write-config: these names are in this file.
void answer_ssh_config(const std::string& cluster, const Path& file, const std::vector<std::string>& names,
                       Reporter& reporter);

// Replaces this process by ssh with these words, the first of which is "ssh". Throws Error where it cannot.
[[noreturn]] void become_ssh(std::vector<std::string> line, Reporter& reporter);

}  // namespace dtrain::cli
