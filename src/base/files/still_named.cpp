#include <dtrain/base/still_named.hpp>

#include <sys/stat.h>

namespace dtrain {
namespace {

bool is_same_file(const FileDescriptor& file, const struct stat& there) {
  struct stat ours {};
  return ::fstat(file.get(), &ours) == 0 && there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

}  // namespace

bool is_still_named(const FileDescriptor& file, const Path& path) {
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0 && is_same_file(file, there);
}

bool is_still_reached(const FileDescriptor& file, const Path& path) {
  struct stat there {};
  return ::stat(path.c_str(), &there) == 0 && is_same_file(file, there);
}

}  // namespace dtrain
