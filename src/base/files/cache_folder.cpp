#include <dtrain/base/cache_folder.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/own_files.hpp>

namespace dtrain {
namespace {

// Below a folder where everybody may make files: another user may have made it first, to plant files there.
Path own_folder_in(const Path& shared) {
  const Path folder = shared / fmt::format("dtrain-{}", ::geteuid());
  ::mkdir(folder.c_str(), 0700);
  if (is_own_folder(folder, FolderRights::any)) return folder;
  throw UsageError(fmt::format("{}: is no folder that belongs to this user alone", folder.string()),
                   "set HOME or XDG_CACHE_HOME to a folder for the cache");
}

std::string folder_named_by(const char* variable) { return environment(variable).value_or(""); }

}  // namespace

Path user_cache_folder() {
  if (const std::string cache = folder_named_by("XDG_CACHE_HOME"); !cache.empty()) return Path(cache) / "dtrain";
  if (const std::string home = folder_named_by("HOME"); !home.empty()) return Path(home) / ".cache" / "dtrain";
  const std::string shared = folder_named_by("TMPDIR");
  return own_folder_in(shared.empty() ? "/tmp" : shared);
}

}  // namespace dtrain
