// One rank of a job whose program is not dtrain's: starts it in every generation with the rank it has there, and ends
// it when the generation does. elastic decides who the ranks are; this is to it what train::train() is.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/elastic/membership.hpp>
#include <dtrain/external/program.hpp>

namespace dtrain::external {

// The worker that the program stands for.
struct Workplace {
  std::string host;  // its line in the host file
  int slot = 0;
  std::string address;  // of this host, numeric: where other ranks reach it
  int processors = 1;   // that this machine has for the job
  Path job_folder;
  std::vector<std::string> environment;  // what the program gets besides what run_program() adds
  std::string mark;                      // NAME=value, in the environment of all that is started, and of nothing else
};

// How a process ended.
struct ProcessEnd {
  int code = 0;  // of exit(), when signal is 0
  int signal = 0;
  bool ok() const { return code == 0 && signal == 0; }
  // As shells say it: 128 and the signal.
  int shell_code() const { return signal == 0 ? code : 128 + signal; }
};

struct Ended {
  enum class How { done, removed, stopped, failed, stuck };  // stuck: it fails again and again at the same place
  How how = How::done;
  std::string reason;
  ProcessEnd end{};  // of the process that failed
};

// Throws Error where the program cannot be started from the current folder with this environment: a host that lacks it
// must not make the others start again.
void check_program(const Program& program, const std::vector<std::string>& environment);

// Blocks until the job needs this rank no more. All that it started is gone then. Call from a process that has no other
// children: orphans of the program become its own. Throws Error when the program cannot be started, after it ended
// what it had started.
Ended run_program(const Program& program, const Workplace& here, elastic::Membership& membership);

}  // namespace dtrain::external
