#include "download_part.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/open_locked.hpp>

namespace dtrain::net {

Path download_part(const Path& to) { return Path(to) += ".part"; }

Path download_source(const Path& to) { return download_part(to) += ".from"; }

FileDescriptor open_download_part(const Path& to) {
  const Path part = download_part(to);
  FileDescriptor file = open_locked(part, O_CREAT);
  if (file) return file;
  if (errno != EWOULDBLOCK) fail_download("create", part);
  throw Error(fmt::format("{}: another process is downloading it", to.string()), "wait for it to end");
}

void fail_download(std::string_view action, const Path& path, int error) {
  throw Error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)),
              error == ENOSPC ? "free some space there or choose another folder" : "");
}

}  // namespace dtrain::net
