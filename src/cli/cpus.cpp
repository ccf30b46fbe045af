#include "cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::cli {
namespace {

int cpus_of_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

std::optional<std::string> first_line(const Path& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? std::optional(line) : std::nullopt;
}

// cgroup v2 holds "QUOTA PERIOD" or "max PERIOD" in cpu.max of every group from ours up to the root.
double quota_of_groups() {
  double smallest = std::numeric_limits<double>::infinity();
  const auto line = first_line("/proc/self/cgroup");
  if (!line || !line->starts_with("0::/")) return smallest;
  for (Path group = line->substr(3);; group = group.parent_path()) {
    const auto limit = first_line("/sys/fs/cgroup" + group.string() + "/cpu.max");
    const auto parts = split(limit.value_or(""), ' ');
    const auto quota = parse_number(parts.front()), period = parse_number(parts.back());
    if (quota && period && *period > 0) smallest = std::min(smallest, *quota / *period);
    if (!group.has_relative_path()) return smallest;
  }
}

}  // namespace

int usable_cpus() {
  const double quota = std::max(1.0, std::ceil(quota_of_groups()));
  return static_cast<int>(std::min<double>(cpus_of_affinity(), quota));
}

}  // namespace dtrain::cli
