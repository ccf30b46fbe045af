#include <sys/stat.h>
#include <sys/statvfs.h>

#include <array>
#include <set>

#include <dtrain/cluster/checkup.hpp>

namespace dtrain::cluster {
namespace {

// Folders of the machine itself: a shared folder that is full is no fault of one machine.
constexpr std::array kFolders{"/", "/tmp", "/var", "/home"};

}  // namespace

std::vector<DiskFacts> look_at_disks() {
  std::vector<DiskFacts> disks;
  std::set<dev_t> seen;
  for (const char* folder : kFolders) {
    struct stat about {};
    struct statvfs system {};
    if (::stat(folder, &about) != 0 || !seen.insert(about.st_dev).second) continue;
    if (::statvfs(folder, &system) != 0 || system.f_blocks == 0) continue;
    disks.push_back({.path = folder,
                     .bytes = std::uint64_t{system.f_blocks} * system.f_frsize,
                     .free_bytes = std::uint64_t{system.f_bavail} * system.f_frsize,
                     .files = system.f_files,
                     .free_files = system.f_favail});
  }
  return disks;
}

}  // namespace dtrain::cluster
