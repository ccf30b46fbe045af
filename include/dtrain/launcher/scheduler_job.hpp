// A request to a scheduler for a job that runs one command in the foreground.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::launcher {

struct SchedulerJob {
  Path program;                        // salloc or qrsh
  int count = 1;                       // Slurm: hosts; Grid Engine: slots
  std::string queue{};                 // empty: the scheduler's default
  std::string parallel_environment{};  // for Grid Engine
  std::vector<std::string> hosts{};    // for Slurm; empty: any
  std::vector<std::string> command{};  // the first word is a path
};

// Requests whole hosts; the job continues when one of them fails. The command runs on this machine.
std::vector<std::string> salloc_command(const SchedulerJob& job);
// The command runs on one of the job's hosts, in the caller's folder but without its environment.
std::vector<std::string> qrsh_command(const SchedulerJob& job);

// The output of `qconf -spl`; empty: it could not be run. `folders`: where programs are searched.
std::vector<std::string> parallel_environments(const std::string& folders);

}  // namespace dtrain::launcher
