#include "process_tree.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include <dtrain/base/machine.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain {
namespace {

struct Process {
  pid_t id = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';
  std::int64_t began = 0;  // in clock ticks since the boot
  std::string name;
  bool lives() const { return state != 'Z' && state != 'X'; }
};

// In the numbers after the state; field 22 of proc(5).
constexpr std::size_t kStartTime = 18;

// What /proc cannot show, because the process is gone or another user's, reads as empty.
std::string read_quietly(const Path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char chunk[16 << 10];
  for (ssize_t got; fd && (got = ::read(fd.get(), chunk, sizeof chunk)) > 0;) text.append(chunk, std::size_t(got));
  return text;
}

// proc(5): "77 (the name) S 1 ..."; a name may hold spaces and parentheses.
std::optional<Process> parse_stat(const std::string& text) {
  const auto open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close + 4 > text.size()) return std::nullopt;
  Process process;
  process.id = static_cast<pid_t>(parse_integer(trim(text.substr(0, open))).value_or(0));
  process.name = text.substr(open + 1, close - open - 1);
  process.state = text[close + 2];
  const auto numbers = split(std::string_view(text).substr(close + 4), ' ');  // parent, group, session, ...
  if (numbers.size() < 3) return std::nullopt;
  process.parent = static_cast<pid_t>(parse_integer(numbers[0]).value_or(0));
  process.group = static_cast<pid_t>(parse_integer(numbers[1]).value_or(0));
  process.session = static_cast<pid_t>(parse_integer(numbers[2]).value_or(0));
  if (numbers.size() > kStartTime) process.began = parse_integer(numbers[kStartTime]).value_or(0);
  return process;
}

void for_each_number(const Path& folder, const std::function<void(const Path&)>& act) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") == name.npos) act(entry->path());
  }
}

std::vector<Process> all_processes() {
  std::vector<Process> processes;
  for_each_number("/proc", [&](const Path& folder) {
    if (auto process = parse_stat(read_quietly(folder / "stat"))) processes.push_back(*process);
  });
  return processes;
}

bool holds_mark(const std::string& environment, std::string_view mark) {
  const auto variables = split(environment, '\0');
  return std::any_of(variables.begin(), variables.end(),
                     [&](const auto& variable) { return variable.starts_with(mark); });
}

}  // namespace

std::string process_namespace() {
  std::error_code unknown;
  const Path numbers = std::filesystem::read_symlink("/proc/self/ns/pid", unknown);
  const std::string boot(trim(read_quietly("/proc/sys/kernel/random/boot_id")));
  return fmt::format("{} {}", boot.empty() ? host_name() : boot, numbers.string());
}

std::string process_identity(std::int64_t process) {
  const auto found = parse_stat(read_quietly(fmt::format("/proc/{}/stat", process)));
  return found && found->lives() ? fmt::format("{} {}", process_namespace(), found->began) : "";
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

// The kernel names the ended child that came first; /proc shows those behind a known one.
pid_t reap_adopted(const std::vector<pid_t>& known) {
  const auto is_known = [&](pid_t process) { return std::ranges::find(known, process) != known.end(); };
  siginfo_t info{};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return 0;
  if (!is_known(info.si_pid)) return ::waitpid(info.si_pid, nullptr, WNOHANG);
  pid_t reaped = 0;
  for (const Process& process : all_processes()) {
    if (process.lives() || process.parent != ::getpid() || is_known(process.id)) continue;
    if (::waitpid(process.id, nullptr, WNOHANG) == process.id) reaped = process.id;
  }
  return reaped;
}

std::vector<pid_t> descendants_of(pid_t root, const std::vector<pid_t>& spared) {
  const auto is_spared = [&](pid_t process) { return std::ranges::find(spared, process) != spared.end(); };
  const auto processes = all_processes();
  std::set<pid_t> tree{root};
  std::vector<pid_t> living;
  // A parent may stand after its children in /proc, so a pass is repeated until it finds nothing.
  for (std::size_t size = 0; size != tree.size();) {
    size = tree.size();
    for (const Process& process : processes) {
      if (is_spared(process.id) || tree.contains(process.id) || !tree.contains(process.parent)) continue;
      tree.insert(process.id);
      if (process.lives()) living.push_back(process.id);
    }
  }
  return living;
}

pid_t living_member(pid_t group, pid_t known) {
  const auto is_member = [&](const Process& process) { return process.group == group && process.lives(); };
  if (known != 0) {
    const auto process = parse_stat(read_quietly(fmt::format("/proc/{}/stat", known)));
    if (process && is_member(*process)) return known;
  }
  const auto processes = all_processes();
  const auto found = std::ranges::find_if(processes, is_member);
  return found == processes.end() ? 0 : found->id;
}

std::vector<pid_t> processes_marked(std::string_view mark) {
  std::vector<pid_t> marked;
  if (mark.empty()) return marked;
  for_each_number("/proc", [&](const Path& folder) {
    if (!holds_mark(read_quietly(folder / "environ"), mark)) return;
    marked.push_back(static_cast<pid_t>(*parse_integer(folder.filename().string())));
  });
  return marked;
}

std::vector<pid_t> kill_found(const std::function<std::vector<pid_t>()>& find) {
  constexpr int kRounds = 100;  // each finds what was started before all of the last round's had stopped
  constexpr int kQuietRounds = 2;
  constexpr std::chrono::milliseconds kPause(5);  // an execve(2) takes less, unless the machine is very busy
  std::set<pid_t> stopped;
  for (int round = 0, quiet = 0; round < kRounds && quiet < kQuietRounds; ++round) {
    if (quiet > 0) std::this_thread::sleep_for(kPause);
    const std::size_t before = stopped.size();
    for (pid_t process : find()) {
      if (process != ::getpid() && stopped.insert(process).second) ::kill(process, SIGSTOP);
    }
    quiet = stopped.size() == before ? quiet + 1 : 0;
  }
  for (pid_t process : stopped) ::kill(process, SIGKILL);
  return {stopped.begin(), stopped.end()};
}

std::vector<pid_t> kill_tree(pid_t root, std::string_view mark, const std::vector<pid_t>& spared) {
  return kill_found([&] {
    std::vector<pid_t> members = descendants_of(root, spared);
    for (pid_t process : processes_marked(mark)) members.push_back(process);
    members.push_back(root);
    return members;
  });
}

std::vector<pid_t> kill_marked(std::string_view mark) {
  return kill_found([&] { return processes_marked(mark); });
}

std::vector<pid_t> kill_session(pid_t leader, std::string_view mark) {
  return kill_found([&] {
    std::vector<pid_t> members = processes_marked(mark);
    for (const Process& process : all_processes()) {
      if (process.session == leader && process.lives()) members.push_back(process.id);
    }
    return members;
  });
}

bool reap_session(pid_t leader) {
  bool left = false;
  for (const Process& process : all_processes()) {
    if (process.session != leader || process.parent != ::getpid()) continue;
    if (::waitpid(process.id, nullptr, WNOHANG) == 0) left = true;
  }
  return left;
}

bool has_ended(pid_t child) {
  siginfo_t info{};
  const int result = ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
  return result != 0 || info.si_pid != 0;
}

std::vector<std::string> describe_threads(pid_t process) {
  std::vector<std::string> lines;
  for_each_number(fmt::format("/proc/{}/task", process), [&](const Path& folder) {
    const auto thread = parse_stat(read_quietly(folder / "stat"));
    if (!thread) return;
    const std::string place(trim(read_quietly(folder / "wchan")));
    lines.push_back(fmt::format("thread {} {}: state {}{}", thread->id, thread->name, thread->state,
                                place.empty() || place == "0" ? "" : ", in " + place));
  });
  return lines;
}

}  // namespace dtrain
