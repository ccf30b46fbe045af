#include "ssh_words.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/cluster/cluster_head.hpp>

namespace dtrain::cli {

std::vector<std::string> options_of_ssh(const std::string& cluster) {
  const net::SshOptions own = cluster::cluster_ssh_options(cluster);
  std::vector<std::string> words;
  const auto add = [&words](const std::string& option) { words.insert(words.end(), {"-o", option}); };
  add(fmt::format("UserKnownHostsFile={}", own.known_hosts.string()));
  add("StrictHostKeyChecking=accept-new");
  add("ForwardAgent=no");
  for (const Path& key : own.identities) {
    if (std::filesystem::exists(key)) add(fmt::format("IdentityFile={}", key.string()));
  }
  return words;
}

Tunnel::Tunnel(const std::string& cluster, const std::string& login, std::uint16_t port) {
  std::vector<std::string> line = {"/usr/bin/env", "ssh",          "-N", "-o", "ExitOnForwardFailure=yes",
                                   "-o",           "BatchMode=yes"};
  for (const std::string& word : options_of_ssh(cluster)) line.push_back(word);
  line.insert(line.end(), {"-L", fmt::format("127.0.0.1:{0}:127.0.0.1:{0}", port), login});
  Spawn child = spawn_of(line);
  child.environment = own_environment();
  child.error = STDERR_FILENO;
  child.death_signal = SIGTERM;
  process_ = spawn(child);
}

Tunnel::~Tunnel() {
  ::kill(process_, SIGTERM);
  ::waitpid(process_, nullptr, 0);
}

}  // namespace dtrain::cli
