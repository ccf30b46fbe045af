#include "registered_ssh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

#include "cli/commands/cluster/ssh_words.hpp"

namespace dtrain::cli {
namespace {

constexpr std::chrono::seconds kToResolve{10};
// What leads to a machine, and proves who it and the user are. Other settings ssh finds by itself.
constexpr std::array<std::pair<std::string_view, const char*>, 8> kKept{{{"hostname", "HostName"},
                                                                         {"user", "User"},
                                                                         {"port", "Port"},
                                                                         {"proxyjump", "ProxyJump"},
                                                                         {"proxycommand", "ProxyCommand"},
                                                                         {"hostkeyalias", "HostKeyAlias"},
                                                                         {"identityfile", "IdentityFile"},
                                                                         {"identitiesonly", "IdentitiesOnly"}}};

// What the user's configuration says of the host: "hostname 10.0.0.2", one a line.
std::string resolved(const cluster::RegisteredHost& host) {
  Spawn child = spawn_of({"/usr/bin/env", "ssh", "-G"});
  for (const std::string& word : words_of_target(host.target())) child.arguments.push_back(word);
  child.environment = own_environment();
  const auto answer = try_asking(std::move(child), kToResolve);
  if (answer && answer->code == 0) return answer->output;
  throw Error(fmt::format("what ssh knows of {} cannot be asked: {}", host.name,
                          answer ? std::string(trim(answer->errors)) : "`ssh -G` gave no answer"),
              fmt::format("try: ssh -G {}", host.name));
}

cluster::SshEntry entry_of(const std::string& cluster, const cluster::RegisteredHost& host) {
  cluster::SshEntry entry{fmt::format("{}.{}", cluster, host.name)};
  for (const std::string& line : split(resolved(host), '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == line.npos) continue;
    const std::string value = line.substr(blank + 1);
    const auto kept =
        std::ranges::find(kKept, std::string_view(line).substr(0, blank), [](const auto& one) { return one.first; });
    if (kept != kKept.end() && value != "none") entry.settings.emplace_back(kept->second, value);
  }
  const net::SshOptions own = cluster::ssh_options_of_registered(cluster);
  std::string known_hosts = cluster::ssh_word(own.known_hosts.string());
  for (const Path& file : own.user_known_hosts) known_hosts.append(" ").append(cluster::ssh_word(file.string()));
  entry.settings.emplace_back("UserKnownHostsFile", known_hosts);
  return entry;
}

std::vector<cluster::SshEntry> entries_of(const cluster::RegisteredCluster& cluster) {
  std::vector<cluster::SshEntry> entries;
  for (const cluster::RegisteredHost& host : cluster.hosts) entries.push_back(entry_of(cluster.name, host));
  return entries;
}

}  // namespace

ExitCode write_ssh_names(const cluster::RegisteredCluster& cluster, Reporter& reporter) {
  const std::vector<cluster::SshEntry> entries = entries_of(cluster);
  const Path file = cluster::write_ssh_blocks(cluster.name, entries);
  std::vector<std::string> names;
  for (const cluster::SshEntry& entry : entries) names.push_back(entry.name);
  answer_ssh_config(cluster.name, file, names, reporter);
  return ExitCode::ok;
}

void renew_ssh_names(const cluster::RegisteredCluster& cluster, Reporter& reporter) {
  if (!cluster::has_ssh_entries(cluster.name)) return;
  try {
    cluster::write_ssh_blocks(cluster.name, entries_of(cluster));
  } catch (const Error& error) {
    reporter.warn(fmt::format("the names of cluster {} for ssh are not up to date: {}", cluster.name, error.what()));
  }
}

}  // namespace dtrain::cli
