// Where a download goes, TO.part, in which it grows, and TO.part.from, which says of what: their names, and the errors
// that all kinds of download give for them.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <optional>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::net {

struct DownloadTarget {
  Path path;                            // behind symbolic links, so that the file is replaced and the links stay
  std::optional<mode_t> permissions{};  // those of the file that is there, which the new one gets
};

// Throws UsageError where `to` names what no download can replace: a folder, a pipe, a device, an open file of /proc.
DownloadTarget download_target(const Path& to);

Path download_part(const Path& to);
Path download_source(const Path& to);

// With its lock, in a folder that is made if need be; it is no more readable than the file that it is to replace.
// Throws Error where it cannot be created or another process holds the lock.
FileDescriptor open_download_part(const DownloadTarget& target);

// Makes the part the target, on disk; what says of what it was is removed.
void complete_download(const FileDescriptor& part, const DownloadTarget& target);

// "PATH: cannot ACTION: what errno says".
[[noreturn]] void fail_download(std::string_view action, const Path& path, int error = errno);

}  // namespace dtrain::net
