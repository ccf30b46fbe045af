// The processes that one rank of a generation runs, with their environments. Pure.
#pragma once

#include <string>
#include <vector>

#include <dtrain/external/run_program.hpp>

#include "rank_placement.hpp"

namespace dtrain::external {

enum class Role { worker, server, scheduler };

struct RankProcess {
  Role role = Role::worker;
  int index = 0;  // among those of its role; a worker's is its rank
  std::vector<std::string> command;
  std::vector<std::string> environment;  // the whole environment
};

// The worker comes first, then its share of the parameter servers. Throws Error where the host has too few GPUs for the
// rank.
std::vector<RankProcess> processes_of(const Program& program, const RankPlacement& placement, int rank,
                                      const RunContext& here);

// MXNet's servers need a scheduler, beside rank 0. Other frameworks' scripts do not, and would not end in that role.
bool may_need_scheduler(const Program& program);
RankProcess scheduler_of(const Program& program, const RankPlacement& placement, const RunContext& here);

// The names of TensorFlow: "worker", "ps", ...
const char* role_name(Role role);

}  // namespace dtrain::external
