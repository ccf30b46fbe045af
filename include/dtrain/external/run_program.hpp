// One rank of a job that runs another framework's program: starts the program in every generation with its rank there,
// and ends it with the generation. Elastic membership decides about the ranks; run_program() takes the place of
// train::train().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/elastic/membership.hpp>
#include <dtrain/external/program.hpp>

namespace dtrain::external {

// The worker that runs the program.
struct RunContext {
  std::string host;  // its line in the host file
  int slot = 0;
  std::string address;  // this host's numeric address, where other ranks connect
  int processors = 1;   // processors of this machine for the job
  int gpus = 0;         // NVIDIA GPUs of this machine; 0: none, or they cannot be counted
  Path job_folder;
  std::vector<std::string> environment;  // of the program, without the variables that run_program() adds
  std::function<bool()> interrupted{};   // whether the job ends because the user interrupted it; any thread
  // Called before each start of the program, when none of its processes is left.
  struct Start {
    std::uint64_t generation = 0;
    int rank = 0, ranks = 1;
  };
  std::function<void(const Start& start)> before_start{};
  std::string mark;  // NAME=value, in the environment of all processes started here, and of no other
};

struct Ended {
  // failed: of the whole job. stuck: repeated failures without progress. unfit: only this host, which joined a job
  // whose program runs on the others, and whose own rank failed soon.
  enum class How { done, removed, stopped, failed, stuck, unfit };
  How how = How::done;
  std::string reason;
  ProcessEnd end{};  // of the process that failed
};

// Throws Error where the program cannot be started from the current folder with this environment, unless its name holds
// a placeholder, which each rank fills. Call it before the worker joins, so that a host without the program does not
// make the other ranks start again.
void check_program(const Program& program, const std::vector<std::string>& environment);

// Blocks until the job does not need this rank any more; all its processes have ended then. Call from a process without
// other children, because it adopts the program's orphans. Throws Error when the program cannot be started, after it
// ended what it had started.
Ended run_program(const Program& program, const RunContext& here, elastic::Membership& membership);

}  // namespace dtrain::external
