#include <dtrain/base/cache_folder.hpp>

#include <cstdlib>

namespace dtrain {

Path user_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return Path(cache) / "dtrain";
  const char* home = std::getenv("HOME");
  return Path(home && *home ? home : "/tmp") / ".cache" / "dtrain";
}

}  // namespace dtrain
