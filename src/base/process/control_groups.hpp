// What the control groups of this process, of version 1 and 2, leave to it.
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// What a group allows, or still has, of one thing; kNoLimit where it says nothing.
struct GroupLimit {
  std::string_view controller;           // of version 1
  double (*unified)(const Path& group);  // by the files of version 2
  double (*divided)(const Path& group);  // by those of version 1
};

// The least of the groups of this process and all above them. In a container some of them are not to be seen. `root` is
// where /proc and /sys are.
double least_of_groups(const Path& root, const GroupLimit& limit);

std::string first_line(const Path& path);  // empty: the file is not there

}  // namespace dtrain
