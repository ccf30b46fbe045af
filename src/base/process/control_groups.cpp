#include "control_groups.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

#include <dtrain/base/text.hpp>

namespace dtrain {
namespace {

double least_up_from(const Path& mount, Path group, double (*limit)(const Path&)) {
  double least = kNoLimit;
  for (;; group = group.parent_path()) {
    least = std::min(least, limit(mount / group.relative_path()));
    if (!group.has_relative_path()) return least;
  }
}

}  // namespace

double least_of_groups(const Path& root, const GroupLimit& limit) {
  const Path mounts = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  double least = kNoLimit;
  for (std::string line; std::getline(file, line);) {  // NUMBER:CONTROLLERS:GROUP; version 2 has no controllers there
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string group = line.substr(second + 1), controllers = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> names = split(controllers, ',');
    if (controllers.empty()) {
      least = std::min(least, least_up_from(mounts, group, limit.unified));
    } else if (std::ranges::find(names, limit.controller) != names.end()) {
      least = std::min(least, least_up_from(mounts / limit.controller, group, limit.divided));
      least = std::min(least, least_up_from(mounts / controllers, group, limit.divided));
    }
  }
  return least;
}

std::string first_line(const Path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace dtrain
