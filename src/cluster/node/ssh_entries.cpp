#include <dtrain/base/files.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/own_folders.hpp>

namespace dtrain::cluster {
namespace {

constexpr const char* kFile = "ssh_config";

Path home() { return environment("HOME").value_or("/"); }
Path entries_of(const std::string& cluster) { return clusters_of_user() / cluster / kFile; }

// An absolute path: ssh takes the home folder from the account database, not from HOME.
std::string include_line() {
  const std::string files = (clusters_of_user() / "*" / kFile).string();
  return fmt::format("Include {}", files.find(' ') == files.npos ? files : fmt::format("\"{}\"", files));
}

std::string ssh_name(const cluster::Fleet& fleet, const cluster::Node& node) {
  return fmt::format("{}.{}", fleet.name, node.name);
}

// Keeps owner and permissions of the file. A symbolic link still leads to it.
void replace(const Path& link, const std::string& text) {
  const Path file = std::filesystem::weakly_canonical(link);
  struct stat before {};
  const bool was_there = ::stat(file.c_str(), &before) == 0;
  const unsigned mode = was_there ? before.st_mode & 07777 : kOwnerOnly;
  write_file_atomic(file, text, mode);
  if (!was_there) return;
  // Restores what the umask removed and what root took over.
  if (::chmod(file.c_str(), mode) != 0 ||
      (::geteuid() == 0 && ::chown(file.c_str(), before.st_uid, before.st_gid) != 0))
    throw Error(fmt::format("{}: its owner and mode have changed", file.string()), "look at them with ls -l");
}

void change_config(const std::function<std::string(std::string_view config, std::string_view line)>& change) {
  const Path folder = home() / ".ssh", config = folder / "config";
  const std::string before = std::filesystem::exists(config) ? read_file(config) : std::string();
  const std::string after = change(before, include_line());
  if (after == before) return;
  if (!std::filesystem::exists(folder)) {
    make_folder(folder);
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  }
  replace(config, after);
}

Path write_entries(const std::string& cluster, const std::string& text) {
  Path file = entries_of(cluster);
  write_file_atomic(file, text, kOwnerOnly);
  change_config(with_include);
  return file;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

std::string without_controls(std::string text) {
  std::ranges::replace_if(text, is_control, '?');
  return text;
}

// A name with one of these would be several names, or a pattern that catches other hosts.
void require_one_host(const std::string& name) {
  const bool is_one = !name.empty() && std::ranges::none_of(name, [](char c) {
    return c == ' ' || is_control(c) || std::string_view("*?!\"#,").find(c) != std::string_view::npos;
  });
  if (is_one) return;
  throw UsageError(fmt::format("'{}' cannot be the name of a host in the configuration of ssh", without_controls(name)),
                   "give the host a name without blanks, quotes and the signs * ? ! # ,");
}

void require_one_line(const std::string& name, const std::string& key, const std::string& value) {
  if (std::ranges::none_of(value, is_control)) return;
  throw UsageError(fmt::format("{}: its {} '{}' is more than a line of the configuration of ssh", name, key,
                               without_controls(value)),
                   "take the control characters out");
}

bool has_entries_of_any() {
  std::error_code none;
  return std::ranges::any_of(std::filesystem::directory_iterator(clusters_of_user(), none),
                             [](const auto& one) { return std::filesystem::exists(one.path() / kFile); });
}

void or_warn(const std::string& cluster, Reporter& reporter, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    reporter.warn(fmt::format("the names of cluster {} for ssh are not up to date: {}", cluster, error.what()));
  }
}

}  // namespace

std::vector<std::string> ssh_names(const cluster::Fleet& fleet) {
  std::vector<std::string> names;
  for (const cluster::Node& node : fleet.nodes) {
    if (!address_of(node).empty()) names.push_back(ssh_name(fleet, node));
  }
  return names;
}

std::string ssh_blocks(const std::string& cluster, const std::vector<SshEntry>& entries) {
  std::string text = fmt::format("# Nodes of cluster {}, written by `dtrain cluster ssh --write-config`.\n", cluster);
  for (const SshEntry& entry : entries) {
    require_one_host(entry.name);
    text += fmt::format("Host {}\n", entry.name);
    for (const auto& [key, value] : entry.settings) {
      require_one_line(entry.name, key, value);
      text += fmt::format("  {} {}\n", key, value);
    }
  }
  return text;
}

std::string ssh_word(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '%' ? "%%" : std::string(1, c);
  return safe.find(' ') == safe.npos ? safe : fmt::format("\"{}\"", safe);
}

std::string ssh_entries(const cluster::Fleet& fleet, const std::string& user, const Path& known_hosts) {
  std::vector<SshEntry> entries;
  const cluster::Node* head = fleet.head();
  for (const cluster::Node& node : fleet.nodes) {
    if (address_of(node).empty()) continue;
    SshEntry entry{ssh_name(fleet, node),
                   {{"HostName", address_of(node)},
                    {"User", user},
                    {"HostKeyAlias", node.instance_id},
                    {"UserKnownHostsFile", ssh_word(known_hosts.string())},
                    {"StrictHostKeyChecking", "accept-new"},
                    {"ForwardAgent", "no"}}};
    if (head && node.public_ip.empty() && node.role != cluster::Role::head)
      entry.settings.emplace_back("ProxyJump", ssh_name(fleet, *head));
    entries.push_back(std::move(entry));
  }
  return ssh_blocks(fleet.name, entries);
}

std::string with_include(std::string_view config, std::string_view line) {
  for (const std::string& there : split(config, '\n')) {
    if (trim(there) == line) return std::string(config);
  }
  return fmt::format("{}\n{}", line, config);
}

std::string without_include(std::string_view config, std::string_view line) {
  std::string kept;
  while (!config.empty()) {
    const std::size_t end = std::min(config.find('\n'), config.size() - 1) + 1;
    const std::string_view one = config.substr(0, end);
    if (trim(one) != line) kept += one;
    config.remove_prefix(end);
  }
  return kept;
}

Path write_ssh_entries(const cluster::Fleet& fleet) {
  const Path known_hosts = cluster_ssh_options(fleet.name).known_hosts;  // also makes the folder
  return write_entries(fleet.name, ssh_entries(fleet, logins_of(fleet).front(), known_hosts));
}

Path write_ssh_blocks(const std::string& cluster, const std::vector<SshEntry>& entries) {
  make_folder_of_cluster(cluster);
  return write_entries(cluster, ssh_blocks(cluster, entries));
}

bool has_ssh_entries(const std::string& cluster) { return std::filesystem::exists(entries_of(cluster)); }

void renew_ssh_entries(const cluster::Fleet& fleet, Reporter& reporter) {
  if (!has_ssh_entries(fleet.name)) return;
  or_warn(fleet.name, reporter, [&] { write_ssh_entries(fleet); });
}

void renew_ssh_entries(net::AwsCalls& aws, const std::string& cluster, Reporter& reporter) {
  if (!has_ssh_entries(cluster)) return;
  or_warn(cluster, reporter, [&] { write_ssh_entries(cluster::read_fleet(aws, cluster)); });
}

void remove_ssh_entries(const std::string& cluster, Reporter& reporter) {
  std::error_code failed;
  if (!std::filesystem::remove(entries_of(cluster), failed)) return;
  if (!has_entries_of_any()) or_warn(cluster, reporter, [] { change_config(without_include); });
}

}  // namespace dtrain::cluster
