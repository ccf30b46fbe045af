// Whether one machine can run a job's agents and ranks, so that a job that cannot run is refused at once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace dtrain::job {

struct MachineLoad {
  int hosts = 1, ranks = 1;  // agents, and workers of all of them
  bool is_here = true;       // they run on this machine
};

struct MachineLimits {
  std::size_t files = 0;  // open at a time in one process
  int processors = 1;
};

// Why the machine cannot run the load, and what to do.
struct Refusal {
  std::string what, hint;
};
std::optional<Refusal> refusal_of(const MachineLoad& load, const MachineLimits& limits);

// Raises the limit on open files of this process as far as the load needs. Throws UsageError where that is not enough.
void prepare_machine(const MachineLoad& load);

}  // namespace dtrain::job
