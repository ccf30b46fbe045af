// The processes that one rank of a generation runs, and the environment that tells each who it is. Pure.
#pragma once

#include <string>
#include <vector>

#include <dtrain/external/run_program.hpp>

#include "cast.hpp"

namespace dtrain::external {

enum class Role { worker, server, scheduler };

struct Part {
  Role role = Role::worker;
  int index = 0;  // among those of its role; a worker's is its rank
  std::vector<std::string> command;
  std::vector<std::string> environment;  // all of it
};

// Its worker comes first. Parameter servers need MXNet's scheduler too, beside rank 0, unless the program is told by
// placeholders who it is.
std::vector<Part> parts_of(const Program& program, const Cast& cast, int rank, const Workplace& here);

// "worker", "ps", ...: as TensorFlow calls it.
const char* role_name(Role role);

}  // namespace dtrain::external
