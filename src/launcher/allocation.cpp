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

Path find_scontrol(const Variables& variables) {
  return find_program("scontrol", variables("PATH").value_or(""),
                      "Slurm's commands must be in PATH: it alone knows the hosts of its job");
}

std::vector<std::string> expanded(const std::string& nodes, const Path& scontrol) {
  const ProgramAnswer answer = ask_program({scontrol.string(), "show", "hostnames", nodes});
  if (answer.code == 0)
    return words_of([text = answer.output]() mutable {
      std::ranges::replace(text, '\n', ' ');
      return text;
    }());
  throw Error(fmt::format("scontrol cannot read the list of hosts {}: {}", nodes, trim(answer.errors)));
}

// The variables name the hosts of the first component alone, and srun starts nothing on the others.
void refuse_heterogeneous(const Variables& variables) {
  const auto components = parse_integer(variables("SLURM_HET_SIZE").value_or(""));
  if (!components || *components < 2) return;
  throw UsageError(
      fmt::format("this Slurm job is heterogeneous: only the first of its {} components would be used", *components),
      "submit a job of one component, without ':', such as `sbatch -N2 ...`");
}

// One worker for each host unless the user asked for tasks.
std::vector<GrantedHost> hosts_of_slurm(const std::string& nodes, const Variables& variables) {
  std::vector<GrantedHost> hosts;
  for (const std::string& name : expanded(nodes, find_scontrol(variables))) hosts.push_back({name, 1});
  if (!variables("SLURM_NTASKS") && !variables("SLURM_NTASKS_PER_NODE")) return hosts;
  const std::vector<int> tasks = tasks_per_node(variables("SLURM_TASKS_PER_NODE").value_or(""));
  if (tasks.size() != hosts.size()) return hosts;
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i].slots = tasks[i];
  return hosts;
}

// "gpu:h100:2(IDX:0,3),gpu:a100:1(IDX:4),shard:8": all types of GPUs are added up.
int gpus_of_gres(std::string_view gres) {
  std::string plain;  // without what is in parentheses
  bool inside = false;
  for (const char c : gres) {
    if (c == '(') inside = true;
    if (!inside) plain += c;
    if (c == ')') inside = false;
  }
  int gpus = 0;
  for (const std::string& part : split(plain, ',')) {
    const std::vector<std::string> words = split(part, ':');
    if (words.front() == "gpu") gpus += static_cast<int>(parse_integer(words.back()).value_or(0));
  }
  return gpus;
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

std::vector<NodeGpus> gpus_of_nodes(std::string_view text, std::string_view job) {
  constexpr std::string_view kJob = "JobId=", kNodes = "Nodes=", kGres = "GRES=";
  std::vector<NodeGpus> all;
  bool is_of_job = false;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    const std::string_view first = words.front();
    if (first.starts_with(kJob)) is_of_job = first.substr(kJob.size()) == job;
    if (!is_of_job || !first.starts_with(kNodes)) continue;
    NodeGpus& found = all.emplace_back(std::string(first.substr(kNodes.size())));
    for (const std::string_view word : words) {
      if (word.starts_with(kGres)) found.gpus += gpus_of_gres(word.substr(kGres.size()));
    }
  }
  return all;
}

std::string_view short_name(std::string_view host) { return host.substr(0, host.find('.')); }

std::map<std::string, int> find_granted_gpus(const Variables& variables) try {
  const auto job = variables("SLURM_JOB_ID");
  if (!job) return {};
  const Path scontrol = find_scontrol(variables);
  const ProgramAnswer answer = ask_program({scontrol.string(), "show", "job", "-d", *job});
  if (answer.code != 0) return {};
  std::map<std::string, int> gpus;
  for (const NodeGpus& group : gpus_of_nodes(answer.output, *job)) {
    if (group.gpus == 0) continue;
    for (const std::string& host : expanded(group.nodes, scontrol)) gpus[host] = group.gpus;
  }
  return gpus;
} catch (const Error&) {  // srun itself says what is wrong with the job
  return {};
}

std::optional<Allocation> find_allocation(const Variables& variables) {
  Allocation found;
  const auto slurm = variables("SLURM_JOB_NODELIST");
  const auto grid = variables("PE_HOSTFILE"), pbs = variables("PBS_NODEFILE"), lsf = variables("LSB_DJOB_HOSTFILE");
  if (slurm) {
    refuse_heterogeneous(variables);
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
