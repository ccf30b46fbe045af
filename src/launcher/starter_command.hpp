// The command line that starts one agent on one host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <dtrain/launcher/starter_launcher.hpp>

namespace dtrain::launcher {

struct StarterCall {
  ProcessStarter starter = ProcessStarter::open_mpi;
  Path program;
  bool as_root = false;
  std::string own_host{};  // this machine's name
  int gpus = 0;            // that Slurm's job was granted on the host
};

// Throws UsageError for a host that names a user or a port: a process starter logs in in its own way.
std::vector<std::string> starter_command(const StarterCall& call, const elastic::HostLine& host,
                                         const std::vector<std::string>& agent);

// The kind of mpirun whose `mpirun --version` prints this. Throws UsageError if it is of neither kind.
ProcessStarter kind_of_mpirun(std::string_view version);

}  // namespace dtrain::launcher
