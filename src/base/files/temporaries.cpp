#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <optional>

#include <dtrain/base/temporaries.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain {
namespace {

constexpr std::string_view kMark = ".tmp.";
constexpr std::time_t kUnchanged = 60;  // seconds; a writer changes its file much more often

// The process in NAME.tmp.PID; nothing for any other name.
std::optional<pid_t> writer_of(std::string_view name) {
  const std::size_t mark = name.rfind(kMark);
  if (mark == name.npos) return {};
  const auto process = parse_integer(name.substr(mark + kMark.size()));
  if (!process || *process <= 0 || *process > INT32_MAX) return {};
  return static_cast<pid_t>(*process);
}

bool is_alive(pid_t process) { return ::kill(process, 0) == 0 || errno != ESRCH; }

bool is_abandoned(const Path& file, pid_t writer) {
  struct stat status {};
  if (is_alive(writer) || ::lstat(file.c_str(), &status) != 0) return false;
  return S_ISREG(status.st_mode) && std::time(nullptr) - status.st_mtime >= kUnchanged;
}

}  // namespace

std::vector<Path> remove_abandoned_temporaries(const Path& folder, std::string_view start) {
  std::vector<Path> removed;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const auto writer = name.starts_with(start) ? writer_of(name) : std::nullopt;
    std::error_code stays;
    if (writer && is_abandoned(entry->path(), *writer) && std::filesystem::remove(entry->path(), stays)) {
      removed.push_back(entry->path());
    }
  }
  return removed;
}

}  // namespace dtrain
