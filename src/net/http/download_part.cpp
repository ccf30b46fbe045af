#include "download_part.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/open_locked.hpp>

namespace dtrain::net {
namespace {

constexpr int kMostLinks = 40;  // as many as Linux follows
constexpr mode_t kPermissionBits = 0777;

// A link in /proc, to which /dev/stdout and /dev/fd/1 lead, stands for an open file and is not that file's name.
bool is_in_proc(const Path& path) {
  struct statfs system {};
  const Path folder = path.has_parent_path() ? path.parent_path() : Path(".");
  return ::statfs(folder.c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

Path behind_links(Path path) {
  std::error_code error;
  for (int links = 0; links < kMostLinks && !is_in_proc(path); ++links) {
    const Path next = std::filesystem::read_symlink(path, error);
    if (error) break;  // no link
    path = path.parent_path() / next;
  }
  return path;
}

void set_permissions(const FileDescriptor& file, const Path& path, mode_t permissions) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_download("read", path);
  if ((status.st_mode & kPermissionBits) == permissions) return;
  if (::fchmod(file.get(), permissions) != 0) fail_download("set the permissions", path);
}

}  // namespace

// stat(2) follows the links first: it refuses those that the kernel refuses to follow, such as another user's in /tmp.
DownloadTarget download_target(const Path& to) {
  struct stat status {};
  const bool is_there = ::stat(to.c_str(), &status) == 0;
  if (!is_there && errno != ENOENT && errno != ENOTDIR) fail_download("write there", to);
  DownloadTarget target{.path = behind_links(to)};
  if ((is_there && !S_ISREG(status.st_mode)) || is_in_proc(target.path)) {
    throw UsageError(fmt::format("{}: is there and is no regular file, so no download can replace it", to.string()),
                     "name a file: a download grows in a file beside it, and is renamed once it is whole");
  }
  if (is_there) target.permissions = status.st_mode & kPermissionBits;
  return target;
}

Path download_part(const Path& to) { return Path(to) += ".part"; }

Path download_source(const Path& to) { return download_part(to) += ".from"; }

// Its owner can always write it, so that a later run can go on with it.
FileDescriptor open_download_part(const DownloadTarget& target) {
  const Path part = download_part(target.path);
  make_folder(part.parent_path());
  FileDescriptor file = open_locked(part, O_CREAT);
  if (file) {
    if (target.permissions) set_permissions(file, part, *target.permissions | S_IRUSR | S_IWUSR);
    return file;
  }
  if (errno != EWOULDBLOCK) fail_download("create", part);
  throw Error(fmt::format("{}: another process is downloading it", target.path.string()), "wait for it to end");
}

void complete_download(const FileDescriptor& part, const DownloadTarget& target) {
  const Path name = download_part(target.path);
  if (target.permissions) set_permissions(part, name, *target.permissions);
  if (::fsync(part.get()) != 0) fail_download("write to disk", name);
  if (::rename(name.c_str(), target.path.c_str()) != 0) fail_download("rename", name);
  ::unlink(download_source(target.path).c_str());
}

void fail_download(std::string_view action, const Path& path, int error) {
  throw Error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)),
              error == ENOSPC ? "free some space there or choose another folder" : "");
}

}  // namespace dtrain::net
