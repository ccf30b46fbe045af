#include "parts.hpp"

#include <fmt/format.h>

#include "environments.hpp"
#include "placeholders.hpp"

namespace dtrain::external {
namespace {

Part make_part(Role role, int index, const Program& program, const Cast& cast, int rank, const Workplace& here) {
  Part part{.role = role, .index = index, .command = program.command, .environment = {}};
  if (program.fills_placeholders) part.command = fill_placeholders(program.command, cast, role, index);
  const Character who{program, cast, rank, here, role, index};
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
  variables.set_all(role == Role::worker ? program.worker_environment : program.server_environment);
  part.environment = variables.take();
  part.environment.push_back(here.mark);
  return part;
}

}  // namespace

std::vector<Part> parts_of(const Program& program, const Cast& cast, int rank, const Workplace& here) {
  std::vector<Part> parts = {make_part(Role::worker, rank, program, cast, rank, here)};
  if (cast.servers > 0 && rank == 0 && !program.fills_placeholders) {
    parts.push_back(make_part(Role::scheduler, 0, program, cast, rank, here));
  }
  for (const int server : cast.servers_of(rank)) {
    parts.push_back(make_part(Role::server, server, program, cast, rank, here));
  }
  return parts;
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
