#include <dtrain/base/open_files.hpp>

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace dtrain {
namespace {

constexpr rlim_t kEnough = 65'536;  // some programs close every descriptor up to the limit

rlim_t most_open_files() {
  rlimit files{};
  return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : RLIM_INFINITY;
}

}  // namespace

void raise_open_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= kEnough) return;
  files.rlim_cur = std::min(files.rlim_max, kEnough);
  ::setrlimit(RLIMIT_NOFILE, &files);
}

std::string hint_without_descriptors(int error) {
  if (error == ENFILE) return "the machine has no file descriptor left: end other programs, or raise fs.file-max";
  if (error != EMFILE) return {};
  return fmt::format("raise the limit of the process on open files: ulimit -n, currently {}", most_open_files());
}

std::size_t free_descriptors() {
  const std::size_t most = most_open_files();
  std::error_code error;
  std::size_t open = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    ++open;
  }
  if (error == std::errc::too_many_files_open) return 0;
  return most - std::min(open, most);
}

}  // namespace dtrain
