#include <dtrain/base/open_files.hpp>

#include <sys/resource.h>

#include <algorithm>

namespace dtrain {
namespace {

constexpr rlim_t kEnough = 65'536;  // some programs close every descriptor up to the limit

}  // namespace

void raise_open_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= kEnough) return;
  files.rlim_cur = std::min(files.rlim_max, kEnough);
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace dtrain
