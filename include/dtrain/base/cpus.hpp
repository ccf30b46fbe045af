// How many processors this process may use.
#pragma once

#include <dtrain/base/files.hpp>

namespace dtrain {

// The smaller of the affinity mask and the control groups' quota, rounded up; at least 1.
int usable_cpus();

// Processors that the control groups of this process allow, of version 1 and 2; infinity: no limit. `root` is where
// /proc and /sys are.
double cpu_quota(const Path& root = "/");

}  // namespace dtrain
