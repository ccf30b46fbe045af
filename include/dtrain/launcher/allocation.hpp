// The hosts that a scheduler granted to the job in which this process runs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::launcher {

struct GrantedHost {
  std::string name;
  int slots = 1;
  friend bool operator==(const GrantedHost&, const GrantedHost&) = default;
};

enum class Scheduler { slurm, grid_engine, pbs, lsf };
const char* scheduler_name(Scheduler scheduler);  // for messages

struct Allocation {
  Scheduler scheduler = Scheduler::slurm;
  std::vector<GrantedHost> hosts;  // never empty
};

// The value of an environment variable.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

// The hosts in the variables of Slurm (SLURM_JOB_NODELIST), Grid Engine (PE_HOSTFILE), PBS (PBS_NODEFILE) or LSF
// (LSB_DJOB_HOSTFILE); nullopt: this process is in no such job. Runs `scontrol` for Slurm's list. Throws Error if the
// job's own list cannot be read, and UsageError for a heterogeneous job of Slurm.
[[nodiscard]] std::optional<Allocation> find_allocation(const Variables& variables);

// A host's name without its domain: schedulers and machines tell the same host by either.
std::string_view short_name(std::string_view host);

// The number of GPUs that the Slurm job of this process (SLURM_JOB_ID) was granted on each of its hosts. Empty: it was
// granted none, there is no such job, or `scontrol`, which is run for it, does not say.
[[nodiscard]] std::map<std::string, int> find_granted_gpus(const Variables& variables);

// The hosts as lines of a host file.
std::string host_lines(const std::vector<GrantedHost>& hosts);

// Parsers of the formats in files and variables. They throw DataError.
//
// One "h1 4 all.q@h1 UNDEFINED" per line; a host may have several lines, one for each queue.
std::vector<GrantedHost> hosts_of_pe_hostfile(std::string_view text);
// One host per line, repeated for each slot.
std::vector<GrantedHost> hosts_of_node_file(std::string_view text);
// SLURM_TASKS_PER_NODE, "2(x3),1": a number for each host.
std::vector<int> tasks_per_node(std::string_view text);

struct NodeGpus {
  std::string nodes;  // Slurm's short form of several hosts, "n[1-2]"
  int gpus = 0;       // on each of these hosts, of all types together
  friend bool operator==(const NodeGpus&, const NodeGpus&) = default;
};
// The lines "Nodes=n[1-2] ... GRES=gpu:2(IDX:0-1)" of this job in what `scontrol show job -d` prints, which may show
// several jobs: all tasks of an array, or all components of a heterogeneous job.
std::vector<NodeGpus> gpus_of_nodes(std::string_view text, std::string_view job);

}  // namespace dtrain::launcher
