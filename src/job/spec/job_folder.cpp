#include "job_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/ssh.hpp>

#include "process_facts.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr unsigned kOwnerOnly = 0600;
// flock(2) looks at a lock only by taking it, so a command that looks holds it for a moment: on NFS for the time that
// its file server needs.
constexpr auto kLookPatience = 1s;
constexpr auto kLockRetry = 10ms;
constexpr auto kAgentsPatience = 200ms;  // shorter, because commands ask for agents again and again

FileDescriptor open_lock(const Path& path, int flags, unsigned permissions = 0666) {
  return FileDescriptor(::open(path.c_str(), flags | O_RDWR | O_CLOEXEC, permissions));
}

FileDescriptor create_lock(const Path& path, std::string_view option, unsigned permissions = 0666) {
  FileDescriptor fd = open_lock(path, O_CREAT, permissions);
  if (fd) return fd;
  throw Error(fmt::format("{}: cannot create: {}", path.string(), std::strerror(errno)),
              fmt::format("choose a folder that this user can write to: {}", option));
}

// False: errno says why.
bool lock_file(const FileDescriptor& fd, int how) {
  while (::flock(fd.get(), how) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

// Tries again while another process holds the lock. False: errno says why.
bool lock_file_within(const FileDescriptor& fd, int how, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!lock_file(fd, how | LOCK_NB)) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kLockRetry);
  }
  return true;
}

[[noreturn]] void cannot_lock(const Path& path, std::string_view option) {
  throw Error(fmt::format("{}: cannot lock: {}", path.string(), std::strerror(errno)),
              fmt::format("choose a folder on a file system that is mounted with locks: {}", option));
}

bool is_locked(const Path& path, int kind, std::chrono::milliseconds patience = 0ms) {
  const FileDescriptor fd = open_lock(path, 0);
  return fd && !lock_file_within(fd, kind, patience) && errno == EWOULDBLOCK;
}

std::string text_or_empty(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value ? value->as_string() : std::string();
}

Json to_json(const SyncedFolder& sync) {
  return Json::object({{"to", sync.to}, {"from", sync.from.string()}, {"shared", sync.shared}});
}

SyncedFolder synced_folder_from_json(const Json& json) {
  return {json.at("to").as_string(), json.at("from").as_string(), json.at("shared").as_bool()};
}

}  // namespace

std::string JobFolder::command(std::string_view words) const {
  return fmt::format("dtrain {} --job-dir {}", words, net::shell_quoted(path.string()));
}

std::optional<CoordinatorFile> read_coordinator(const JobFolder& folder) {
  if (!file_exists(folder.coordinator())) return std::nullopt;
  return coordinator_in(read_file(folder.coordinator()), folder.coordinator().string());
}

std::optional<CoordinatorFile> read_own_coordinator(const JobFolder& folder) {
  if (!file_exists(folder.coordinator())) return std::nullopt;
  return coordinator_in(read_own_file(folder.coordinator()), folder.coordinator().string());
}

CoordinatorFile coordinator_in(const std::string& text, const std::string& source) {
  const Json json = Json::parse(text, source);
  CoordinatorFile file;
  file.pid = json.at("pid").as_integer();
  file.host = json.at("host").as_string();
  for (const Json& address : json.at("addresses").as_array()) file.addresses.push_back(address.as_string());
  file.port = static_cast<std::uint16_t>(json.at("port").as_integer());
  file.launcher = enum_value(config::kLauncherNames, text_or_empty(json, "launcher")).value_or(file.launcher);
  if (const Json* sync = json.find("sync")) file.sync = synced_folder_from_json(*sync);
  file.started_in = text_or_empty(json, "started_in");
  file.token = text_or_empty(json, "token");
  file.data = text_or_empty(json, "data");
  if (const Json* program = json.find("runs_program")) file.runs_program = program->as_bool();
  if (const Json* log = json.find("has_log")) file.has_log = log->as_bool();
  if (const Json* time = json.find("stop_timeout_ms"))
    file.stop_timeout = std::chrono::milliseconds(time->as_integer());
  file.ended = text_or_empty(json, "ended");
  if (const Json* code = json.find("exit_code")) file.exit_code = static_cast<ExitCode>(code->as_integer());
  if (const Json* failed = json.find("program_failed")) file.program_failed = failed->as_bool();
  if (const Json* term = json.find("term")) file.term = static_cast<std::uint64_t>(term->as_integer());
  if (const Json* survives = json.find("survives")) file.survives = survives->as_bool();
  return file;
}

void write_coordinator(const JobFolder& folder, const CoordinatorFile& file) {
  Json addresses = Json::array();
  for (const std::string& address : file.addresses) addresses.push_back(address);
  Json json = Json::object({{"schema", "dtrain.coordinator/1"},
                            {"pid", file.pid},
                            {"host", file.host},
                            {"addresses", std::move(addresses)},
                            {"port", std::int64_t{file.port}},
                            {"started_in", file.started_in.string()},
                            {"term", file.term},
                            {"survives", file.survives},
                            {"data", file.data},
                            {"runs_program", file.runs_program},
                            {"has_log", file.has_log},
                            {"stop_timeout_ms", std::int64_t{file.stop_timeout.count()}}});
  json["launcher"] = enum_name(config::kLauncherNames, file.launcher);
  if (!file.sync.to.empty()) json["sync"] = to_json(file.sync);
  if (!file.token.empty()) json["token"] = file.token;
  if (file.over()) {
    json["ended"] = file.ended;
    json["exit_code"] = static_cast<int>(file.exit_code);
    json["program_failed"] = file.program_failed;
  }
  write_file_atomic(folder.coordinator(), json.dump() + "\n", kOwnerOnly);
}

// Returns no descriptor if another process holds the lock for as long as `patience`.
static FileDescriptor lock_alone(const Path& path, std::string_view option, unsigned permissions,
                                 std::chrono::milliseconds patience) {
  FileDescriptor fd = create_lock(path, option, permissions);
  if (lock_file_within(fd, LOCK_EX, patience)) return fd;
  if (errno == EWOULDBLOCK) return {};
  cannot_lock(path, option);
}

std::optional<FileLock> FileLock::take(const Path& path, std::string_view option, unsigned permissions) {
  FileDescriptor fd = lock_alone(path, option, permissions, kLookPatience);
  return fd ? std::optional(FileLock(std::move(fd))) : std::nullopt;
}

std::optional<FileLock> FileLock::take_now(const Path& path, std::string_view option, unsigned permissions) {
  FileDescriptor fd = lock_alone(path, option, permissions, 0ms);
  return fd ? std::optional(FileLock(std::move(fd))) : std::nullopt;
}

FileLock FileLock::share(const Path& path, std::chrono::milliseconds patience) {
  constexpr std::string_view kOption = "--job-dir";
  FileDescriptor fd = create_lock(path, kOption);
  if (lock_file_within(fd, LOCK_SH, patience)) return FileLock(std::move(fd));
  if (errno != EWOULDBLOCK) cannot_lock(path, kOption);
  throw Error(fmt::format("{}: another process has held this lock for {}", path.string(), format_duration(patience)),
              fmt::format("end that process, which `fuser {}` names", net::shell_quoted(path.string())));
}

FileLock coordinate(const JobFolder& folder) {
  if (auto lock = FileLock::take(folder.lock())) return std::move(*lock);
  throw job_runs_there(folder, read_coordinator(folder));
}

Error job_runs_there(const JobFolder& folder, const std::optional<CoordinatorFile>& coordinator) {
  const bool is_known = coordinator && coordinator->pid > 0 && !coordinator->host.empty();
  const std::string who = is_known ? fmt::format(" (process {} on {})", coordinator->pid, coordinator->host) : "";
  return Error(fmt::format("{}: a job runs there already{}", folder.path.string(), who),
               fmt::format("use another --job-dir; `{}` shows its hosts, and `{}` ends it",
                           folder.command("hosts list"), folder.command("stop")));
}

bool is_held(const Path& lock) { return is_locked(lock, LOCK_SH); }

bool is_coordinated(const JobFolder& folder) { return is_held(folder.lock()); }

std::vector<std::int64_t> holders_in(const std::string& locks, std::uint64_t inode) {
  std::vector<std::int64_t> holders;
  for (const std::string& line : split(locks, '\n')) {
    // 7: FLOCK  ADVISORY  READ 4711 08:01:123456 0 EOF
    std::istringstream words(line);
    std::string number, kind, mode, access, file;
    std::int64_t pid = 0;
    if (!(words >> number >> kind >> mode >> access >> pid >> file) || kind != "FLOCK" || pid <= 0) continue;
    if (file.substr(file.rfind(':') + 1) == std::to_string(inode)) holders.push_back(pid);
  }
  return holders;
}

std::vector<std::int64_t> agents_of(const JobFolder& folder) {
  struct stat status {};
  if (::stat(folder.agents_lock().c_str(), &status) != 0) return {};
  try {
    return holders_in(read_file("/proc/locks"), status.st_ino);
  } catch (const Error&) {
    return {};
  }
}

// Agents share the lock, so only an exclusive one shows them. Another command that looks holds such a one for a moment.
bool has_agents(const JobFolder& folder) { return is_locked(folder.agents_lock(), LOCK_EX, kAgentsPatience); }

bool has_agents_of_unfinished_job(const JobFolder& folder) {
  if (!has_agents(folder)) return false;
  const auto file = read_coordinator(folder);
  return file && file->survives && !file->over();
}

bool may_have_successor(const JobFolder& folder, const CoordinatorFile& file) {
  const bool is_here = file.launcher == config::Launcher::local && file.host == host_name();
  return file.survives && (!is_here || has_agents(folder));
}

}  // namespace dtrain::job
