#include "host_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/launcher/allocation.hpp>

#include "job_launcher.hpp"

namespace dtrain::job {
namespace {

constexpr std::chrono::seconds kListDeadline{30};
constexpr const char* kMoreWorkers =
    "-n counts hosts: leave it out to take all of them; for more workers on a host, write slots=N behind it in the "
    "file, or `dtrain launch --nproc-per-host N`";
constexpr std::size_t kLongestHostFile = 8 << 20;  // some hundred thousand hosts

elastic::HostList parsed(const Path& file, const std::string& text) {
  elastic::HostList list = elastic::parse_host_file(text);
  if (!list.repeated.empty() && list.problems.front().starts_with(list.repeated.front())) {
    throw UsageError(fmt::format("{}: {}", file.string(), list.repeated.front()),
                     "write it once, with slots=2 for two workers");
  }
  if (!list.problems.empty()) {
    throw UsageError(fmt::format("{}: {}", file.string(), list.problems.front()),
                     "one host a line: name, user@host:port, with slots=n for several workers; # begins a comment");
  }
  if (list.hosts.empty()) throw UsageError(fmt::format("{}: no host in it", file.string()), "one host a line");
  return list;
}

// The first `count` hosts with all lines before them. `text` is a list without problems.
std::string first_hosts(const std::string& text, std::size_t count) {
  std::string kept;
  std::size_t found = 0;
  for (const std::string& line : split(text, '\n')) {
    if (found == count) break;
    found += elastic::parse_host_file(line).hosts.size();
    kept += line + '\n';
  }
  return kept;
}

[[noreturn]] void refuse_as_no_text(const Path& file) {
  throw UsageError(
      fmt::format("--hostfile {}: this is no text of at most {} MiB", file.string(), kLongestHostFile >> 20),
      "give a file with one host a line");
}

void require_there(const Path& file) {
  if (file_exists(file)) return;
  throw UsageError(fmt::format("--hostfile {}: no such file", file.string()), "one host a line");
}

bool is_stream(const Path& file) {
  std::error_code gone;
  return file != "/dev/null" && !std::filesystem::is_regular_file(file, gone);
}

// read_file() refuses a FIFO, whose writer may never come, and reads a pipe that /dev/fd names, as for <(...).
std::string text_of_host_file(const Path& file) {
  require_there(file);
  std::error_code unknown;
  const auto size = std::filesystem::file_size(file, unknown);
  if (!unknown && size > kLongestHostFile) refuse_as_no_text(file);
  std::string text;
  try {
    text = read_file(file);
  } catch (const DataError&) {  // a device without an end
    refuse_as_no_text(file);
  }
  if (text.size() > kLongestHostFile || text.find('\0') != text.npos) refuse_as_no_text(file);
  if (!text.empty() || !is_stream(file)) return text;
  throw UsageError(fmt::format("--hostfile {}: holds nothing", file.string()),
                   "a pipe can be read once: give a file to a command that reads it again");
}

// The first -n hosts of `source`; all of them if the user gave no number.
StartingHosts chosen_from(const Path& source, std::string text, const config::JobOptions& options, bool chose_number) {
  StartingHosts hosts;
  hosts.text = std::move(text);
  if (!hosts.text.ends_with('\n')) hosts.text += '\n';
  hosts.list = parsed(source, hosts.text);
  const auto wanted = static_cast<std::size_t>(options.hosts);
  if (!chose_number || wanted == hosts.list.hosts.size()) return hosts;
  if (wanted > hosts.list.hosts.size()) {
    throw UsageError(fmt::format("--num-workers {}: {} has {}", wanted, source.string(),
                                 count_text(hosts.list.hosts.size(), "host")),
                     options.hostfile ? kMoreWorkers : "leave -n out to take all of them");
  }
  hosts.text = first_hosts(hosts.text, wanted);
  hosts.list = parsed(source, hosts.text);
  return hosts;
}

std::size_t slots_of(const launcher::Allocation& allocation) {
  std::size_t slots = 0;
  for (const launcher::GrantedHost& host : allocation.hosts) slots += static_cast<std::size_t>(host.slots);
  return slots;
}

// For the user's number of workers, which give_slots() adds: it takes precedence over the scheduler's slots.
std::vector<launcher::GrantedHost> without_slots(std::vector<launcher::GrantedHost> hosts) {
  for (launcher::GrantedHost& host : hosts) host.slots = 1;
  return hosts;
}

// A scheduler that counts slots may have granted the requested -n on fewer hosts.
StartingHosts granted(const config::JobOptions& options, bool chose_number) {
  const auto allocation = launcher::find_allocation(environment);
  if (!allocation) {
    throw UsageError(
        fmt::format("--launcher {} needs hosts", enum_name(config::kLauncherNames, options.launcher)),
        "add -H FILE, a file with one host per line, or run the command in a job of Slurm, Grid Engine, PBS "
        "or LSF");
  }
  const bool all = slots_of(*allocation) == static_cast<std::size_t>(options.hosts);
  return chosen_from(fmt::format("this {} job", launcher::scheduler_name(allocation->scheduler)),
                     launcher::host_lines(options.slots > 0 ? without_slots(allocation->hosts) : allocation->hosts),
                     options, chose_number && !all);
}

// The nodes that are registered with the head now.
StartingHosts registered(const config::JobOptions& options, bool chose_number) {
  const launcher::AgentRegistry registry = own_registry();
  const Json answer = launcher::ask_registry(registry, Json::object({{"ask", "list"}}), kListDeadline);
  std::string text;
  for (const Json& node : answer.at("nodes").as_array()) {
    if (node.at("connected").as_bool()) text += node.at("address").as_string() + '\n';
  }
  return chosen_from(fmt::format("cluster {}", registry.cluster), text, options, chose_number);
}

StartingHosts kept_hosts(const Path& existing) {
  StartingHosts hosts;
  hosts.text = read_file(existing);
  hosts.list = parsed(existing, hosts.text);
  hosts.kept = true;
  return hosts;
}

// A host of the list that the allocation lacks; null: it has all.
const elastic::HostLine* first_not_granted(const launcher::Allocation& allocation, const elastic::HostList& list) {
  const auto missing = std::ranges::find_if(list.hosts, [&](const elastic::HostLine& host) {
    const auto is_it = [&](const launcher::GrantedHost& granted) {
      return launcher::short_name(granted.name) == launcher::short_name(host.name);
    };
    return std::ranges::none_of(allocation.hosts, is_it);
  });
  return missing == list.hosts.end() ? nullptr : &*missing;
}

// A scheduler gives a job that it requeues other hosts, where the kept list is of no use. Empty: the list is kept, also
// where the scheduler's own cannot be read.
std::string refusal_of_kept(const config::JobOptions& options, const elastic::HostList& list) try {
  if (!options.has_granted_hosts() || options.hostfile) return "";
  const auto allocation = launcher::find_allocation(environment);
  const elastic::HostLine* const missing = allocation ? first_not_granted(*allocation, list) : nullptr;
  if (!missing) return "";
  return fmt::format("{} granted this job other hosts than those of the kept list, which has {}",
                     launcher::scheduler_name(allocation->scheduler), missing->name);
} catch (const Error&) {
  return "";
}

StartingHosts numbered(int count) {
  StartingHosts hosts;
  for (int i = 1; i <= count; ++i) hosts.text += fmt::format("worker{}\n", i);
  hosts.list = elastic::parse_host_file(hosts.text);
  return hosts;
}

void put_ledger_aside(const JobFolder& folder, Reporter& reporter) {
  if (!file_exists(folder.ledger())) return;
  Path aside;
  for (int number = 1; aside.empty() || file_exists(aside); ++number) {
    aside = folder.path / fmt::format("ledger.{}", number);
  }
  std::filesystem::rename(folder.ledger(), aside);
  reporter.note(fmt::format("Put the ledger of the run before aside: {}", aside.string()));
}

}  // namespace

int workers_of(const elastic::HostList& list) {
  int workers = 0;
  for (const elastic::HostLine& host : list.hosts) workers += host.slots;
  return workers;
}

elastic::HostList read_host_file(const Path& file) { return parsed(file, text_of_host_file(file)); }

void require_lasting_host_file(const config::JobOptions& options) {
  if (!options.hostfile) return;
  require_there(*options.hostfile);
  if (!is_stream(*options.hostfile)) return;
  throw UsageError(fmt::format("--hostfile {}: is no file that can be read again later", options.hostfile->string()),
                   "the command is started again, by a queue or a scheduler: name a file with one host a line");
}

void give_slots(StartingHosts& hosts, int slots) {
  std::string text;
  for (const std::string& line : split(hosts.text, '\n')) {
    const std::string_view host = std::string_view(line).substr(0, line.find('#'));
    const bool says = host.find("slots=") != host.npos;
    const bool is_host = elastic::parse_host_file(line + '\n').hosts.size() == 1;
    text += is_host && !says ? fmt::format("{} slots={}\n", trim(host), slots) : line + '\n';
  }
  hosts.text = text.substr(0, text.size() - 1);
  hosts.list = elastic::parse_host_file(hosts.text);
}

StartingHosts choose_hosts(const config::JobOptions& options, bool chose_number, bool resume) {
  const Path existing = JobFolder{options.folder}.hosts();
  std::string note;
  if (resume && !options.reset_hosts && file_exists(existing)) {
    StartingHosts hosts = kept_hosts(existing);
    note = refusal_of_kept(options, hosts.list);
    if (note.empty()) return hosts;
  }
  StartingHosts hosts =
      options.hostfile ? chosen_from(*options.hostfile, text_of_host_file(*options.hostfile), options, chose_number)
      : options.is_by_agents()      ? registered(options, chose_number)
      : options.has_granted_hosts() ? granted(options, chose_number)
                                    : numbered(options.hosts);
  if (options.slots > 1) give_slots(hosts, options.slots);
  hosts.note = note;
  return hosts;
}

void create_job_files(const JobFolder& folder, const StartingHosts& hosts, bool resume, Reporter& reporter) {
  make_folder(folder.path);
  make_folder(folder.logs());
  if (!resume) put_ledger_aside(folder, reporter);
  if (hosts.kept) {
    reporter.note(fmt::format("Kept worker host file {} with {}; --reset-hosts makes it anew", folder.hosts().string(),
                              count_text(hosts.list.hosts.size(), "host")));
  } else {
    if (!hosts.note.empty()) reporter.note(hosts.note);
    write_file_atomic(folder.hosts(), hosts.text);
    reporter.note(fmt::format("Created worker host file {}", folder.hosts().string()));
  }
  if (!file_exists(folder.log())) {
    write_file_atomic(folder.log(), "");
    reporter.note(fmt::format("Created worker host log file {}", folder.log().string()));
  }
}

}  // namespace dtrain::job
