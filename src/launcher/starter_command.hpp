// The command line that starts one agent on one host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <dtrain/launcher/starter_launcher.hpp>

namespace dtrain::launcher {

struct StarterCall {
  Starter starter = Starter::open_mpi;
  Path program;
  bool as_root = false;
  std::string own_host;  // this machine's name
};

// Throws UsageError for a host that names a user or a port: a starter logs in its own way.
std::vector<std::string> starter_command(const StarterCall& call, const elastic::HostLine& host,
                                         const std::vector<std::string>& agent);

// Whose `mpirun --version` said this. Throws UsageError for one that is neither.
Starter kind_of_mpirun(std::string_view version);

}  // namespace dtrain::launcher
