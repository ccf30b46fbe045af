// Host names of cluster nodes for ssh and programs that read its configuration: `ssh demo.w0001`. Each cluster has a
// file of its own beside its known_hosts. One line at the top of ~/.ssh/config includes all of them, and is removed
// with the last. No other line is changed.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {

// One name, with what ssh is to know of it: "HostName", "10.0.0.1".
struct SshEntry {
  std::string name{};
  std::vector<std::pair<std::string, std::string>> settings{};
};
// Pure. A word as ssh's configuration takes it: blanks need quotes, and a percent sign is doubled.
std::string ssh_word(const std::string& text);
// Pure. The Host blocks of these names. Throws UsageError for a name that is none, or a pattern, and for a value that
// would be more than a line.
std::string ssh_blocks(const std::string& cluster, const std::vector<SshEntry>& entries);
// Writes them, for clusters of any kind. Throws Error. Returns the file.
Path write_ssh_blocks(const std::string& cluster, const std::vector<SshEntry>& entries);
bool has_ssh_entries(const std::string& cluster);

// Pure. "demo.head", "demo.w0001": the nodes that have an address.
std::vector<std::string> ssh_names(const cluster::Fleet& fleet);
// What ssh is to know of them.
std::string ssh_entries(const cluster::Fleet& fleet, const std::string& user, const Path& known_hosts);
// The configuration with that line, once, before all others; and without it, as it was before.
std::string with_include(std::string_view config, std::string_view line);
std::string without_include(std::string_view config, std::string_view line);

// Throws Error. Returns the file with the entries.
Path write_ssh_entries(const cluster::Fleet& fleet);
// Rewrites the entries if they exist. A failure is only a warning.
void renew_ssh_entries(const cluster::Fleet& fleet, Reporter& reporter);
void renew_ssh_entries(net::AwsCalls& aws, const std::string& cluster, Reporter& reporter);
void remove_ssh_entries(const std::string& cluster, Reporter& reporter);

}  // namespace dtrain::cluster
