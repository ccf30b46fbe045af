// TO.part, in which a download grows, and TO.part.from, which says of what: their names, and the errors that all kinds
// of download give for them.
#pragma once

#include <cerrno>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::net {

Path download_part(const Path& to);
Path download_source(const Path& to);

// With its lock. Throws Error where it cannot be created or another process holds the lock.
FileDescriptor open_download_part(const Path& to);

// "PATH: cannot ACTION: what errno says".
[[noreturn]] void fail_download(std::string_view action, const Path& path, int error = errno);

}  // namespace dtrain::net
