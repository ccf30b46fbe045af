#include "ssh_words.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/cluster/provider.hpp>

namespace dtrain::cli {

std::vector<std::string> options_of_ssh(const std::string& cluster) {
  const net::SshOptions own = cluster::ssh_options_of(cluster);
  std::vector<std::string> words;
  const auto add = [&words](const std::string& option) { words.insert(words.end(), {"-o", option}); };
  std::string known_hosts = own.known_hosts.string();
  for (const Path& file : own.user_known_hosts) known_hosts.append(" ").append(file.string());
  add(fmt::format("UserKnownHostsFile={}", known_hosts));
  // Hosts that the user has named are reached as the user's own configuration says.
  if (own.new_host_keys != net::NewHostKeys::accept) return words;
  add("StrictHostKeyChecking=accept-new");
  add("ForwardAgent=no");
  for (const Path& key : own.identities) {
    if (std::filesystem::exists(key)) add(fmt::format("IdentityFile={}", key.string()));
  }
  return words;
}

std::vector<std::string> words_of_target(const net::SshTarget& target) {
  std::vector<std::string> words;
  if (target.port != 0) words = {"-p", std::to_string(target.port)};
  if (!target.host_key_alias.empty()) words.insert(words.end(), {"-o", "HostKeyAlias=" + target.host_key_alias});
  words.push_back(target.user.empty() ? target.host : fmt::format("{}@{}", target.user, target.host));
  return words;
}

Tunnel::Tunnel(const std::string& cluster, const net::SshTarget& head, std::uint16_t port) {
  std::vector<std::string> line = {"/usr/bin/env", "ssh",          "-N", "-o", "ExitOnForwardFailure=yes",
                                   "-o",           "BatchMode=yes"};
  for (const std::string& word : options_of_ssh(cluster)) line.push_back(word);
  line.insert(line.end(), {"-L", fmt::format("127.0.0.1:{0}:127.0.0.1:{0}", port)});
  for (const std::string& word : words_of_target(head)) line.push_back(word);
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

void answer_ssh_config(const std::string& cluster, const Path& file, const std::vector<std::string>& names,
                       Reporter& reporter) {
  Json list = Json::array();
  for (const std::string& name : names) {
    list.push_back(name);
    if (!reporter.json()) reporter.answer(name);
  }
  if (reporter.json()) {
    reporter.answer_json(Json::object(
        {{"schema", "dtrain.cluster-ssh-config/1"}, {"cluster", cluster}, {"file", file.string()}, {"hosts", list}}));
  }
}

void become_ssh(std::vector<std::string> line, Reporter& reporter) {
  std::vector<char*> words;
  for (std::string& word : line) words.push_back(word.data());
  words.push_back(nullptr);
  reporter.flush();
  ::execvp("ssh", words.data());
  throw Error(fmt::format("cannot start ssh: {}", std::strerror(errno)), "install the OpenSSH client");
}

}  // namespace dtrain::cli
