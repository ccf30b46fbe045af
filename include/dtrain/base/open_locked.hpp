// Opens a file that one process at a time writes, such as NAME.part, which gets another name once it is whole.
#pragma once

#include <dtrain/base/files.hpp>

namespace dtrain {

// For reading and writing, with the lock of flock(2), never waiting for it; a symbolic link is refused. flags: O_CREAT
// or 0. Its holder may rename or remove the file between the opening and the lock: then what has the name now is
// opened. A file system without locks gives the file unlocked.
// No descriptor: errno is EWOULDBLOCK where another process holds the lock, else what open(2) says.
[[nodiscard]] FileDescriptor open_locked(const Path& path, int flags);

}  // namespace dtrain
