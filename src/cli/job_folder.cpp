#include "job_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::cli {
namespace {

constexpr unsigned kOwnerOnly = 0600;
constexpr std::chrono::milliseconds kLockPause{20};

FileDescriptor open_lock(const Path& path, int flags) {
  return FileDescriptor(::open(path.c_str(), flags | O_RDWR | O_CLOEXEC, 0666));
}

std::string text_or_empty(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value ? value->as_string() : std::string();
}

}  // namespace

std::optional<CoordinatorFile> read_coordinator(const JobFolder& folder) {
  if (!std::filesystem::exists(folder.coordinator())) return std::nullopt;
  const Json json = Json::parse(read_file(folder.coordinator()), folder.coordinator().string());
  CoordinatorFile file;
  file.pid = json.at("pid").as_integer();
  file.host = json.at("host").as_string();
  file.address = json.at("address").as_string();
  file.port = static_cast<std::uint16_t>(json.at("port").as_integer());
  file.token = text_or_empty(json, "token");
  file.ended = text_or_empty(json, "ended");
  return file;
}

void write_coordinator(const JobFolder& folder, const CoordinatorFile& file) {
  Json json = Json::object({{"schema", "dtrain.coordinator/1"},
                            {"pid", file.pid},
                            {"host", file.host},
                            {"address", file.address},
                            {"port", std::int64_t{file.port}}});
  if (!file.token.empty()) json["token"] = file.token;
  if (file.over()) json["ended"] = file.ended;
  write_file_atomic(folder.coordinator(), json.dump() + "\n", kOwnerOnly);
}

std::optional<FileLock> FileLock::take(const Path& path, std::chrono::milliseconds patience) {
  FileDescriptor fd = open_lock(path, O_CREAT);
  if (!fd) throw Error(fmt::format("{}: cannot create: {}", path.string(), std::strerror(errno)));
  const auto end = std::chrono::steady_clock::now() + patience;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(kLockPause);
  }
  return FileLock(std::move(fd));
}

FileLock coordinate(const JobFolder& folder) {
  if (auto lock = FileLock::take(folder.lock())) return std::move(*lock);
  const auto other = read_coordinator(folder);
  throw Error(fmt::format("{}: a job runs there already{}", folder.path.string(),
                          other ? fmt::format(" (process {} on {})", other->pid, other->host) : ""),
              fmt::format("use another --job-dir, or end it with `dtrain stop --job-dir {}`", folder.path.string()));
}

bool is_coordinated(const JobFolder& folder) {
  const FileDescriptor fd = open_lock(folder.lock(), 0);
  return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace dtrain::cli
