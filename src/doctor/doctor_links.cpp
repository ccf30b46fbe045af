#include "doctor_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <dtrain/base/text.hpp>

namespace dtrain::doctor {
namespace {

constexpr double kNotable = 1.0;          // seconds: more than people can sort log lines by
constexpr double kAwsRefuses = 5 * 60.0;  // requests that are signed so far off

std::string list_of(const std::vector<std::string>& names) { return join(names, ", "); }

// The least that the clock must be off by; 0: it may be right.
double surely_off(const HostFacts& host) {
  if (host.clock_at_least > 0) return host.clock_at_least;
  return std::min(0.0, host.clock_at_most);
}

std::vector<std::string> not_seen(const std::vector<HostFacts>& hosts, const HostFacts& by) {
  std::vector<std::string> missing;
  for (std::size_t other = 0; other < hosts.size(); ++other) {
    if (hosts[other].answered && hosts[other].folder.write_error.empty() &&
        std::ranges::find(by.folder.seen, static_cast<int>(other)) == by.folder.seen.end())
      missing.push_back(hosts[other].name);
  }
  return missing;
}

void judge_sight(const std::vector<HostFacts>& hosts, const std::string& folder, std::vector<Finding>& found) {
  for (const HostFacts& host : hosts) {
    if (!host.answered) continue;
    if (!host.folder.write_error.empty()) {
      found.push_back({Level::problem, "shared folder",
                       fmt::format("{}: {}: {}", host.name, folder, host.folder.write_error),
                       "every host of a job writes to the job folder",
                       fmt::format("ssh {} 'ls -ld {}; mount | grep nfs'", host.name, folder)});
      continue;
    }
    const auto missing = not_seen(hosts, host);
    if (missing.empty()) continue;
    found.push_back({Level::problem, "shared folder",
                     fmt::format("{}: {} does not hold the files of {}", host.name, folder, list_of(missing)),
                     "the hosts see different folders, or see changes late",
                     fmt::format("ssh {} 'df {}'", host.name, folder)});
  }
}

void judge_link_and_lock(const std::vector<HostFacts>& hosts, const std::string& folder, std::vector<Finding>& found) {
  const auto links = std::ranges::count_if(hosts, [](const HostFacts& host) { return host.folder.made_link; });
  if (links != 1) {
    found.push_back({Level::problem, "shared folder",
                     fmt::format("{}: {} hosts succeeded in creating the same link", folder, links),
                     "this link ensures that at most one new coordinator replaces a lost one",
                     "use NFS 4.1 or later, such as EFS"});
  }
  for (const HostFacts& host : hosts) {
    if (host.folder.lock_is_kept.value_or(true)) continue;
    found.push_back({Level::warning, "shared folder",
                     fmt::format("{}: {} does not show a lock that another host holds", host.name, folder),
                     "two jobs could start in the same folder by mistake",
                     "mount the folder without nolock and local_lock"});
  }
}

}  // namespace

std::vector<Finding> judge_clocks(const std::vector<HostFacts>& hosts) {
  std::vector<Finding> found;
  double doubt = 0;
  for (const HostFacts& host : hosts) {
    if (!host.answered) continue;
    doubt = std::max(doubt, host.clock_at_most - host.clock_at_least);
    const double off = surely_off(host);
    if (std::abs(off) < kNotable) continue;
    found.push_back(
        {std::abs(off) < kAwsRefuses ? Level::warning : Level::problem, "clock",
         fmt::format("{} is at least {} {} this machine", host.name,
                     format_duration(std::chrono::duration<double>(std::abs(off))), off > 0 ? "ahead of" : "behind"),
         "logs are merged by time; AWS refuses requests that are 5 minutes off",
         fmt::format("ssh {} sudo timedatectl set-ntp true", host.name)});
  }
  if (found.empty() && std::ranges::any_of(hosts, &HostFacts::answered)) {
    found.push_back({Level::fine, "clock",
                     fmt::format("all agree with this machine's clock within {}",
                                 format_duration(std::chrono::duration<double>(doubt))),
                     "", ""});
  }
  return found;
}

std::vector<Finding> judge_folder(const std::vector<HostFacts>& hosts, const std::string& folder) {
  if (folder.empty() || std::ranges::none_of(hosts, &HostFacts::answered)) return {};
  std::vector<Finding> found;
  judge_sight(hosts, folder, found);
  if (found.empty()) judge_link_and_lock(hosts, folder, found);
  if (found.empty())
    found.push_back({Level::fine, "shared folder",
                     fmt::format("{}: all hosts see the same files; rename, link and lock work", folder), "", ""});
  return found;
}

std::vector<Finding> judge_machines(const std::vector<HostFacts>& hosts) {
  std::map<std::string, std::vector<std::string>> names;
  for (const HostFacts& host : hosts) {
    if (host.answered && !host.machine.empty()) names[host.machine].push_back(host.name);
  }
  std::vector<Finding> found;
  for (const HostFacts& host : hosts) {
    const auto entry = names.find(host.machine);
    if (entry == names.end() || entry->second.size() < 2 || entry->second.front() != host.name) continue;
    found.push_back({Level::note, "machine", fmt::format("{} are one machine", list_of(entry->second)),
                     "a job starts workers for each of these names, which share the machine's processors, memory and "
                     "GPUs",
                     "list the machine once, with slots=N for N workers"});
  }
  return found;
}

std::vector<Finding> judge_links(const std::vector<HostFacts>& hosts) {
  std::vector<Finding> found;
  std::size_t good = 0;
  for (const HostFacts& from : hosts) {
    for (std::size_t to = 0; to < from.links.size(); ++to) {
      if (&hosts[to] == &from || !hosts[to].answered) continue;
      if (from.links[to].error.empty()) {
        ++good;
        continue;
      }
      found.push_back({Level::problem, "network",
                       fmt::format("{} does not reach {}: {}", from.name, hosts[to].name, from.links[to].error),
                       "workers exchange gradients with each other, on ports that the kernel chooses",
                       "allow all TCP between the hosts in their firewall or security group"});
    }
  }
  if (found.empty() && good > 0)
    found.push_back({Level::fine, "network", fmt::format("{} connections between hosts work", good), "", ""});
  return found;
}

}  // namespace dtrain::doctor
