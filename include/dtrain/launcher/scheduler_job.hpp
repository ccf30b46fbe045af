// A job that is asked of a scheduler, to run one command in it while somebody waits.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::launcher {

struct SchedulerJob {
  Path program;                        // salloc or qrsh
  int count = 1;                       // Slurm: hosts; Grid Engine: slots
  std::string queue{};                 // empty: the scheduler's default
  std::string parallel_environment{};  // of Grid Engine
  std::vector<std::string> hosts{};    // of Slurm; empty: any
  std::vector<std::string> command{};  // its first word is a path
};

// Whole hosts, and the job goes on when one of them fails. The command runs here.
std::vector<std::string> salloc_command(const SchedulerJob& job);
// The command runs on one of the job's hosts, with the caller's folder but not its environment.
std::vector<std::string> qrsh_command(const SchedulerJob& job);

// What `qconf -spl` lists; empty when it cannot be asked. `folders`: where programs are.
std::vector<std::string> parallel_environments(const std::string& folders);

}  // namespace dtrain::launcher
