#include <dtrain/base/cpus.hpp>

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include <dtrain/base/text.hpp>

#include "control_groups.hpp"

namespace dtrain {
namespace {

int cpus_of_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

double share(std::string_view quota, std::string_view period) {
  const auto of = parse_number(quota), in = parse_number(period);
  return of && in && *of > 0 && *in > 0 ? *of / *in : kNoLimit;  // "max" and -1: none
}

// Version 2: "QUOTA PERIOD" in one file.
double unified_quota(const Path& group) {
  const auto parts = split(first_line(group / "cpu.max"), ' ');
  return share(parts.front(), parts.back());
}

// Version 1: a file each.
double divided_quota(const Path& group) {
  return share(first_line(group / "cpu.cfs_quota_us"), first_line(group / "cpu.cfs_period_us"));
}

}  // namespace

double cpu_quota(const Path& root) { return least_of_groups(root, {"cpu", unified_quota, divided_quota}); }

int usable_cpus() {
  const double quota = std::max(1.0, std::ceil(cpu_quota()));
  return static_cast<int>(std::min<double>(cpus_of_affinity(), quota));
}

}  // namespace dtrain
