#include <dtrain/base/temporaries.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <optional>

#include <dtrain/base/hash.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain {
namespace {

constexpr std::string_view kMark = ".tmp.";
constexpr std::size_t kPlaceSize = 8, kRandomBytes = 4;  // 2^32 names for each process of a place
// Seconds without a change: a writer changes its file much more often, unless it is held up. Whether a process of
// another machine lives cannot be known here, and its clock may be hours away; a name without a place may be of one.
constexpr std::time_t kUnchanged = 60, kUnchangedElsewhere = 24 * 60 * 60;

struct Writer {
  pid_t process = 0;
  std::string place{};  // empty in names of older versions
};

const std::string& this_place() {
  static const std::string place = sha256_hex(bytes_of(process_namespace())).substr(0, kPlaceSize);
  return place;
}

// The writer in NAME.tmp.PID.PLACE.RANDOM, or in NAME.tmp.PID; nothing for any other name.
std::optional<Writer> writer_of(std::string_view name) {
  const std::size_t mark = name.rfind(kMark);
  if (mark == name.npos) return {};
  const std::vector<std::string> words = split(name.substr(mark + kMark.size()), '.');
  const bool has_place = words.size() == 3 && words[1].size() == kPlaceSize && words[2].size() == 2 * kRandomBytes;
  const auto process = parse_integer(words.front());
  if ((words.size() != 1 && !has_place) || !process || *process <= 0 || *process > INT32_MAX) return {};
  return Writer{static_cast<pid_t>(*process), has_place ? words[1] : ""};
}

bool is_alive(pid_t process) { return ::kill(process, 0) == 0 || errno != ESRCH; }

bool is_abandoned(const Path& file, const Writer& writer) {
  const bool is_elsewhere = !writer.place.empty() && writer.place != this_place();
  struct stat status {};
  if ((!is_elsewhere && is_alive(writer.process)) || ::lstat(file.c_str(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode)) return false;
  if (writer.place == this_place()) return true;
  return std::time(nullptr) - status.st_mtime >= (is_elsewhere ? kUnchangedElsewhere : kUnchanged);
}

}  // namespace

Path temporary_for(const Path& path) {
  const std::string ending =
      fmt::format("{}{}.{}.{}", kMark, ::getpid(), this_place(), to_hex(unpredictable_bytes(kRandomBytes)));
  const std::string name = path.filename().string();
  return Path(path).replace_filename(name.substr(0, NAME_MAX - ending.size()) + ending);
}

bool is_temporary_of_ended_process(std::string_view name) {
  const auto writer = writer_of(name);
  return writer && writer->place == this_place() && !is_alive(writer->process);
}

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
