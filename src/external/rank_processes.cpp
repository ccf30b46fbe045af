#include "rank_processes.hpp"

#include <fmt/format.h>

#include "environments.hpp"
#include "placeholders.hpp"

namespace dtrain::external {
namespace {

RankProcess make_process(Role role, int index, const Program& program, const RankPlacement& placement, int rank,
                         const RunContext& here) {
  RankProcess process{.role = role, .index = index, .command = program.command, .environment = {}};
  if (program.fills_placeholders) process.command = fill_placeholders(program.command, placement, rank, role, index);
  const ProcessIdentity who{program, placement, rank, here, role, index};
  Variables variables(here.environment);
  remove_other_roles(variables);
  add_common(who, variables);
  if (role == Role::worker) {
    add_torch(who, variables);
    add_horovod(who, variables);
    add_jax(who, variables);
  }
  add_tensorflow(who, variables);
  add_mxnet(who, variables);
  variables.set_all(program.environment);
  if (role != Role::worker) hide_gpus(variables);
  variables.set_all(role == Role::worker ? program.worker_environment : program.server_environment);
  // Last: it divides the GPUs that these variables leave visible.
  if (role == Role::worker) share_gpus(who, variables);
  process.environment = variables.take();
  process.environment.push_back(here.mark);
  return process;
}

}  // namespace

std::vector<RankProcess> processes_of(const Program& program, const RankPlacement& placement, int rank,
                                      const RunContext& here) {
  std::vector<RankProcess> processes = {make_process(Role::worker, rank, program, placement, rank, here)};
  for (const int server : placement.servers_of(rank)) {
    processes.push_back(make_process(Role::server, server, program, placement, rank, here));
  }
  return processes;
}

bool may_need_scheduler(const Program& program) { return program.servers > 0 && !program.fills_placeholders; }

RankProcess scheduler_of(const Program& program, const RankPlacement& placement, const RunContext& here) {
  return make_process(Role::scheduler, 0, program, placement, 0, here);
}

const char* role_name(Role role) {
  switch (role) {
    case Role::worker:
      return "worker";
    case Role::server:
      return "ps";
    case Role::scheduler:
      break;
  }
  return "scheduler";
}

}  // namespace dtrain::external
