#include "security.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/objects.hpp>

#include "job/queue/job_queue.hpp"
#include "job/spec/process_facts.hpp"
#include "proc_net.hpp"

namespace dtrain::doctor {
namespace {

constexpr std::string_view kSocket = "socket:[", kDataSocket = "@dtrain-data ", kOrderEnd = ".order";
constexpr const char *kWaiting = "waiting", *kSpec = "spec.json";

// What another user's process hides, and one that has ended, reads as empty.
std::string read_quietly(const Path& path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return {};
  }
}

struct ProcessSockets {
  std::error_code unseen;
  std::set<std::uint64_t> inodes;
};

// proc(5): "77 (the name) Z 1 ...".
bool is_running(pid_t process) {
  const std::string stat = read_quietly(fmt::format("/proc/{}/stat", process));
  const auto close = stat.rfind(')');
  if (close == stat.npos || close + 2 >= stat.size()) return false;
  const char state = stat[close + 2];
  return state != 'Z' && state != 'X';
}

ProcessSockets sockets_of(pid_t process) {
  ProcessSockets sockets;
  std::error_code error;
  std::filesystem::directory_iterator entry(fmt::format("/proc/{}/fd", process), error), end;
  sockets.unseen = error;
  for (; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry->path(), gone).string();
    if (gone || !target.starts_with(kSocket)) continue;
    const auto inode =
        parse_integer(std::string_view(target).substr(kSocket.size(), target.size() - kSocket.size() - 1));
    if (inode) sockets.inodes.insert(static_cast<std::uint64_t>(*inode));
  }
  return sockets;
}

// The TCP sockets of the network namespace of the process.
std::vector<TcpSocket> tcp_sockets_at(pid_t process) {
  std::vector<TcpSocket> sockets;
  for (const char* table : {"tcp", "tcp6"}) {
    for (TcpSocket& socket : parse_tcp_table(read_quietly(fmt::format("/proc/{}/net/{}", process, table))))
      sockets.push_back(std::move(socket));
  }
  return sockets;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> processes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (const auto id = parse_integer(entry.path().filename().string())) processes.push_back(static_cast<pid_t>(*id));
  }
  return processes;
}

bool leads_to(const TcpSocket& socket, const job::CoordinatorFile& coordinator) {
  return !socket.listens && socket.peer_port == coordinator.port &&
         std::ranges::find(coordinator.addresses, socket.peer) != coordinator.addresses.end();
}

// Agents are what has a connection to the coordinator; workers and programs are below them.
std::set<pid_t> processes_of(const job::CoordinatorFile& coordinator) {
  std::set<pid_t> processes;
  if (coordinator.over()) return processes;
  const auto add = [&processes](pid_t process) {
    processes.insert(process);
    for (const pid_t below : descendants_of(process, {::getpid()})) processes.insert(below);
  };
  if (coordinator.host == job::host_name() && ::access(fmt::format("/proc/{}", coordinator.pid).c_str(), F_OK) == 0)
    add(static_cast<pid_t>(coordinator.pid));
  for (const pid_t process : all_processes()) {
    if (process == ::getpid() || processes.contains(process)) continue;
    const ProcessSockets own = sockets_of(process);
    if (own.inodes.empty()) continue;
    const std::vector<TcpSocket> table = tcp_sockets_at(process);
    if (std::ranges::any_of(table, [&](const TcpSocket& socket) {
          return own.inodes.contains(socket.inode) && leads_to(socket, coordinator);
        })) {
      add(process);
    }
  }
  return processes;
}

std::vector<std::string> names_of_near(pid_t process, const ProcessSockets& own) {
  std::vector<std::string> names;
  for (const UnixListener& listener : parse_unix_table(read_quietly(fmt::format("/proc/{}/net/unix", process)))) {
    if (own.inodes.contains(listener.inode)) names.push_back(listener.name);
  }
  return names;
}

void add_ports_of(pid_t process, SecurityFacts& facts) {
  const ProcessSockets own = sockets_of(process);
  if (own.unseen) {
    if (is_running(process)) facts.unseen.push_back(process);
    return;
  }
  std::vector<std::string> words = split(read_quietly(fmt::format("/proc/{}/cmdline", process)), '\0');
  const PortFacts who{.process = process,
                      .role = process == facts.coordinator.pid ? "coordinator" : role_of(words),
                      .use = {},
                      .address = {}};
  const std::vector<std::string> near = names_of_near(process, own);
  for (const TcpSocket& socket : tcp_sockets_at(process)) {
    if (!socket.listens || !own.inodes.contains(socket.inode)) continue;
    PortFacts port = who;
    port.address = socket.address;
    port.port = socket.port;
    facts.ports.push_back(classify_port(std::move(port), near, facts.coordinator));
  }
  for (const std::string& name : near) {
    PortFacts port = who;
    port.address = name;
    const bool is_own = name.starts_with(kDataSocket);
    port.use = is_own ? "gradients" : "own";
    port.guard = is_own ? Guard::same_user : Guard::none;
    facts.ports.push_back(std::move(port));
  }
}

std::string group_name(gid_t id) {
  group entry{}, *found = nullptr;
  std::vector<char> text(64 << 10);
  const bool known = ::getgrgid_r(id, &entry, text.data(), text.size(), &found) == 0 && found != nullptr;
  return known ? found->gr_name : std::to_string(id);
}

class FileList {
 public:
  // False: it is not there, or this user may not look.
  bool add(const Path& path, const std::string& use, FileFacts::Kind kind) {
    struct stat status {};
    if (path.empty() || ::stat(path.c_str(), &status) != 0) return false;
    files.push_back({.path = path.string(),
                     .use = use,
                     .kind = kind,
                     .folder = S_ISDIR(status.st_mode),
                     .mode = status.st_mode & 01777,
                     .owner = user_name(status.st_uid),
                     .group = group_name(status.st_gid)});
    return true;
  }
  // Those whose names end so are secret.
  void add_all_in(const Path& folder, const std::string& use, std::string_view secret_end = {}) {
    add(folder, use, FileFacts::Kind::trusted);
    std::error_code error;
    std::vector<Path> paths;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      paths.push_back(entry->path());
    std::ranges::sort(paths);
    for (const Path& path : paths) {
      const bool is_secret = !secret_end.empty() && path.string().ends_with(secret_end);
      add(path, use, is_secret ? FileFacts::Kind::secret : FileFacts::Kind::trusted);
    }
  }
  void add_queued_job(const Path& folder) {
    add(folder, "queued job", FileFacts::Kind::trusted);
    add(folder / kSpec, kQueuedCommand, FileFacts::Kind::secret);
  }
  std::vector<FileFacts> files;
  std::vector<std::string> unfound;
};

// The newest checkpoint, as the job wrote its path: relative to the folder in which it was started. What is behind
// s3:// has no modes.
void add_checkpoint(const job::JobFolder& folder, const Path& started_in, FileList& list) {
  list.add(folder.latest(), "checkpoint", FileFacts::Kind::trusted);
  const std::string named(trim(read_quietly(folder.latest())));
  if (named.empty() || net::is_object_url(named)) return;
  const Path manifest = std::filesystem::absolute(started_in / named).lexically_normal();
  for (const Path& path : {manifest, Path(manifest).replace_extension(".safetensors")}) {
    if (!list.add(path, "checkpoint", FileFacts::Kind::trusted)) list.unfound.push_back(path.string());
  }
}

FileList read_files(const job::JobFolder& folder, const job::CoordinatorFile& coordinator) {
  using Kind = FileFacts::Kind;
  FileList list;
  list.add(folder.path, "job folder", Kind::trusted);
  list.add(folder.coordinator(), "coordinator", coordinator.token.empty() ? Kind::trusted : Kind::secret);
  list.add(folder.hosts(), "hosts", Kind::trusted);
  list.add(folder.known_hosts(), "host keys", Kind::trusted);
  list.add(folder.journal(), "journal", Kind::trusted);
  list.add(folder.tiebreakers(), "tie-breakers", Kind::trusted);
  list.add(folder.events(), "events", Kind::trusted);
  list.add_all_in(folder.path / kWaiting, "orders", kOrderEnd);
  list.add_all_in(folder.logs(), "logs");
  add_checkpoint(folder, coordinator.started_in, list);
  const Path queued = std::string(trim(read_quietly(folder.queued_job())));
  if (const Path place = queued.empty() ? folder.path : queued; is_listed(place / kSpec)) {
    list.add(place.parent_path(), "queue", Kind::trusted);
    list.add_queued_job(place);
  }
  for (const job::QueuedJob& one : job::JobQueue(folder.path).read()) list.add_queued_job(one.folder);
  return list;
}

}  // namespace

std::string role_of(const std::vector<std::string>& command_line) {
  for (std::size_t i = 1; i < command_line.size(); ++i) {
    if (command_line[i] != "agent" || !Path(command_line[i - 1]).filename().string().starts_with("dtrain")) continue;
    const bool is_worker = std::find(command_line.begin() + static_cast<std::ptrdiff_t>(i), command_line.end(),
                                     "--worker") != command_line.end();
    return is_worker ? "worker" : "agent";
  }
  return "program";
}

PortFacts classify_port(PortFacts port, const std::vector<std::string>& near, const job::CoordinatorFile& job) {
  const std::string ending = fmt::format(" {}", port.port);
  const bool meets_near = std::ranges::any_of(
      near, [&](const std::string& name) { return name.starts_with(kDataSocket) && name.ends_with(ending); });
  const bool is_transport = job.data == "gloo" || job.data == "nccl";
  if (port.role == "program") {
    port.use = "own";
  } else if (port.role != "worker") {
    port.use = "control";
    port.guard = Guard::tls;
  } else if (!meets_near && (is_transport || job.runs_program)) {
    port.use = is_transport ? job.data : "rendezvous";
  } else {
    port.use = is_transport ? "control" : "gradients";  // gloo and nccl connect beside it
    port.guard = job.data == "plain" ? Guard::handshake : Guard::tls;
  }
  return port;
}

SecurityFacts read_security(const job::JobFolder& folder) {
  const auto coordinator = job::read_coordinator(folder);
  if (!coordinator && !is_listed(folder.path / kWaiting) && job::JobQueue(folder.path).read().empty()) {
    throw UsageError(fmt::format("{}: no job in this folder", folder.path.string()),
                     "give --job-dir the folder that was given to `dtrain train --job-dir`");
  }
  SecurityFacts facts{.host = job::host_name(),
                      .folder = std::filesystem::absolute(folder.path).lexically_normal().string(),
                      .has_job = coordinator.has_value(),
                      .coordinator = coordinator.value_or(job::CoordinatorFile{}),
                      .unseen = {},
                      .ports = {},
                      .files = {},
                      .unfound = {}};
  if (facts.has_job) {
    for (const pid_t process : processes_of(facts.coordinator)) add_ports_of(process, facts);
  }
  FileList list = read_files(job::JobFolder{facts.folder}, facts.coordinator);
  facts.files = std::move(list.files);
  facts.unfound = std::move(list.unfound);
  return facts;
}

}  // namespace dtrain::doctor
