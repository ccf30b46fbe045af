#include <dtrain/base/cpus.hpp>

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/text.hpp>

namespace dtrain {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

int cpus_of_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

std::string first_line(const Path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

double share(std::string_view quota, std::string_view period) {
  const auto of = parse_number(quota), in = parse_number(period);
  return of && in && *of > 0 && *in > 0 ? *of / *in : kNoLimit;  // "max" and -1: none
}

// Version 2: "QUOTA PERIOD" in one file.
double unified_limit(const Path& group) {
  const auto parts = split(first_line(group / "cpu.max"), ' ');
  return share(parts.front(), parts.back());
}

// Version 1: a file each.
double divided_limit(const Path& group) {
  return share(first_line(group / "cpu.cfs_quota_us"), first_line(group / "cpu.cfs_period_us"));
}

// The least of the group and all above it. In a container some of them are not to be seen.
double least_up_from(const Path& mount, Path group, double (*limit)(const Path&)) {
  double least = kNoLimit;
  for (;; group = group.parent_path()) {
    least = std::min(least, limit(mount / group.relative_path()));
    if (!group.has_relative_path()) return least;
  }
}

}  // namespace

double cpu_quota(const Path& root) {
  const Path mounts = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  double least = kNoLimit;
  for (std::string line; std::getline(file, line);) {  // NUMBER:CONTROLLERS:GROUP; version 2 has no controllers there
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string group = line.substr(second + 1), controllers = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> names = split(controllers, ',');
    if (controllers.empty()) {
      least = std::min(least, least_up_from(mounts, group, unified_limit));
    } else if (std::find(names.begin(), names.end(), "cpu") != names.end()) {
      least = std::min(least, least_up_from(mounts / "cpu", group, divided_limit));
      least = std::min(least, least_up_from(mounts / controllers, group, divided_limit));
    }
  }
  return least;
}

int usable_cpus() {
  const double quota = std::max(1.0, std::ceil(cpu_quota()));
  return static_cast<int>(std::min<double>(cpus_of_affinity(), quota));
}

}  // namespace dtrain
