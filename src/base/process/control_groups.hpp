// Limits that control groups (version 1 or 2) set for this process.
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// How to read from the folder of a group what it allows, or has left, of one resource; kNoLimit: it sets no limit.
struct GroupLimit {
  std::string_view controller;           // that limits the resource in version 1, such as "cpu"
  double (*unified)(const Path& group);  // reads the files of version 2
  double (*divided)(const Path& group);  // reads the files of version 1
};

// The least of the groups of this process and all above them. In a container some of them are not to be seen. `root` is
// where /proc and /sys are.
double least_of_groups(const Path& root, const GroupLimit& limit);

std::string first_line(const Path& path);  // empty: the file is not there

}  // namespace dtrain
