// Whether an open file still has the name by which it was opened.
#pragma once

#include <dtrain/base/files.hpp>

namespace dtrain {

// Another process may have completed, renamed or removed a file between its opening and its lock, which is of no use
// then. False also where there is nothing of that name; a symbolic link is another file.
[[nodiscard]] bool is_still_named(const FileDescriptor& file, const Path& path);
// The same for a file that may have been opened through symbolic links, such as a log that another program renames.
// False also for no open file.
[[nodiscard]] bool is_still_reached(const FileDescriptor& file, const Path& path);

}  // namespace dtrain
