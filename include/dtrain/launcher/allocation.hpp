// The hosts that a scheduler granted to the job that this process is in.
#pragma once

#include <functional>
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
const char* scheduler_name(Scheduler scheduler);  // for people

struct Allocation {
  Scheduler scheduler = Scheduler::slurm;
  std::vector<GrantedHost> hosts;  // never empty
};

// The value of an environment variable.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

// What Slurm's (SLURM_JOB_NODELIST), Grid Engine's (PE_HOSTFILE), PBS's (PBS_NODEFILE) or LSF's (LSB_DJOB_HOSTFILE)
// variables say; nullopt: this process is in no such job. Runs `scontrol` for Slurm's list. Throws Error when the job's
// own list cannot be read.
std::optional<Allocation> find_allocation(const Variables& variables);

// As lines of a host file.
std::string host_lines(const std::vector<GrantedHost>& hosts);

// The formats, as they stand in files and variables. Throw DataError.
// "h1 4 all.q@h1 UNDEFINED" a line: a host may have several, one for each queue.
std::vector<GrantedHost> hosts_of_pe_hostfile(std::string_view text);
// A host a line, once for each slot.
std::vector<GrantedHost> hosts_of_node_file(std::string_view text);
// SLURM_TASKS_PER_NODE, "2(x3),1": a number for each host.
std::vector<int> tasks_per_node(std::string_view text);

}  // namespace dtrain::launcher
