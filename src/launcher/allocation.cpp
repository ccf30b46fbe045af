#include <dtrain/launcher/allocation.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/launcher/starter_launcher.hpp>

namespace dtrain::launcher {
namespace {

void add_slots(std::vector<GrantedHost>& hosts, std::string_view name, int slots) {
  const auto found = std::ranges::find(hosts, name, &GrantedHost::name);
  if (found == hosts.end()) {
    hosts.push_back({std::string(name), slots});
  } else {
    found->slots += slots;
  }
}

int positive(std::string_view text, const char* what) {
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > 1'000'000) throw DataError(fmt::format("{}: '{}' is no number", what, text));
  return static_cast<int>(*number);
}

std::vector<std::string> words_of(std::string_view line) {
  std::string plain(line);
  std::ranges::replace(plain, '\t', ' ');
  std::vector<std::string> words = split(plain, ' ');
  std::erase(words, "");
  return words;
}

std::vector<std::string> expanded(const std::string& nodes, const Variables& variables) {
  const Path scontrol = find_program("scontrol", variables("PATH").value_or(""),
                                     "Slurm's commands must be in PATH: it alone can read SLURM_JOB_NODELIST");
  const ProgramAnswer answer = ask_program({scontrol.string(), "show", "hostnames", nodes});
  if (answer.code == 0)
    return words_of([text = answer.output]() mutable {
      std::ranges::replace(text, '\n', ' ');
      return text;
    }());
  throw Error(fmt::format("scontrol cannot read SLURM_JOB_NODELIST={}: {}", nodes, trim(answer.errors)));
}

// One worker for each host unless the user asked for tasks.
std::vector<GrantedHost> hosts_of_slurm(const std::string& nodes, const Variables& variables) {
  std::vector<GrantedHost> hosts;
  for (const std::string& name : expanded(nodes, variables)) hosts.push_back({name, 1});
  if (!variables("SLURM_NTASKS") && !variables("SLURM_NTASKS_PER_NODE")) return hosts;
  const std::vector<int> tasks = tasks_per_node(variables("SLURM_TASKS_PER_NODE").value_or(""));
  if (tasks.size() != hosts.size()) return hosts;
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i].slots = tasks[i];
  return hosts;
}

}  // namespace

const char* scheduler_name(Scheduler scheduler) {
  switch (scheduler) {
    case Scheduler::slurm:
      return "Slurm";
    case Scheduler::grid_engine:
      return "Grid Engine";
    case Scheduler::pbs:
      return "PBS";
    case Scheduler::lsf:
      return "LSF";
  }
  return "";
}

std::vector<GrantedHost> hosts_of_pe_hostfile(std::string_view text) {
  std::vector<GrantedHost> hosts;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (words.size() < 2) throw DataError(fmt::format("'{}' has no number of slots", trim(line)));
    add_slots(hosts, words[0], positive(words[1], "slots"));
  }
  return hosts;
}

std::vector<GrantedHost> hosts_of_node_file(std::string_view text) {
  std::vector<GrantedHost> hosts;
  for (const std::string& line : split(text, '\n')) {
    if (!trim(line).empty()) add_slots(hosts, trim(line), 1);
  }
  return hosts;
}

std::vector<int> tasks_per_node(std::string_view text) {
  std::vector<int> tasks;
  for (const std::string& part : split(text, ',')) {
    const std::size_t open = part.find("(x");
    if (open != part.npos && !part.ends_with(')')) throw DataError(fmt::format("'{}' does not end in )", part));
    const int times = open == part.npos ? 1 : positive(part.substr(open + 2, part.size() - open - 3), "hosts");
    tasks.insert(tasks.end(), static_cast<std::size_t>(times), positive(part.substr(0, open), "tasks"));
  }
  return tasks;
}

std::optional<Allocation> find_allocation(const Variables& variables) {
  Allocation found;
  const auto slurm = variables("SLURM_JOB_NODELIST");
  const auto grid = variables("PE_HOSTFILE"), pbs = variables("PBS_NODEFILE"), lsf = variables("LSB_DJOB_HOSTFILE");
  if (slurm) {
    found = {Scheduler::slurm, hosts_of_slurm(*slurm, variables)};
  } else if (grid) {
    found = {Scheduler::grid_engine, hosts_of_pe_hostfile(read_file(*grid))};
  } else if (pbs) {
    found = {Scheduler::pbs, hosts_of_node_file(read_file(*pbs))};
  } else if (lsf) {
    found = {Scheduler::lsf, hosts_of_node_file(read_file(*lsf))};
  } else {
    return std::nullopt;
  }
  if (found.hosts.empty()) throw DataError(fmt::format("{} granted no hosts", scheduler_name(found.scheduler)));
  return found;
}

std::string host_lines(const std::vector<GrantedHost>& hosts) {
  std::string text;
  for (const GrantedHost& host : hosts) {
    text += host.slots == 1 ? host.name + "\n" : fmt::format("{} slots={}\n", host.name, host.slots);
  }
  return text;
}

}  // namespace dtrain::launcher
