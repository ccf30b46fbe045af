#include <dtrain/base/still_named.hpp>

#include <sys/stat.h>

namespace dtrain {

bool is_still_named(const FileDescriptor& file, const Path& path) {
  struct stat there {};
  struct stat ours {};
  return ::fstat(file.get(), &ours) == 0 && ::lstat(path.c_str(), &there) == 0 && there.st_dev == ours.st_dev &&
         there.st_ino == ours.st_ino;
}

}  // namespace dtrain
