#include <dtrain/base/open_locked.hpp>

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include <dtrain/base/still_named.hpp>

namespace dtrain {

FileDescriptor open_locked(const Path& path, int flags) {
  for (;;) {
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0666));
    if (!file) return file;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      file = FileDescriptor();
      errno = EWOULDBLOCK;  // closing may have changed it
      return file;
    }
    if (is_still_named(file, path)) return file;
  }
}

}  // namespace dtrain
