// The processes of one rank in one generation: started together, watched, ended together.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/external/run_program.hpp>

#include "parts.hpp"

namespace dtrain::external {

// Used by one thread, whose end is the end of the processes too.
class Processes {
 public:
  // Starts them all: the worker writes to this process's standard output and error, others to files in `logs` that
  // begin with `name`. Throws Error when one cannot be started; those before it are gone then.
  Processes(const std::vector<Part>& parts, const Path& logs, const std::string& name, std::string mark);
  ~Processes();
  Processes(const Processes&) = delete;

  // Waits so long for something to end. What failed first: the worker, or any other part that did not end well.
  struct Failure {
    std::string who;  // "its program", "its ps 1"
    ProcessEnd end;
  };
  std::optional<Failure> watch(std::chrono::milliseconds wait);
  bool worker_done() const { return processes_.front().end.has_value(); }
  bool all_done() const;

  // The signal to all that run, and SIGKILL to what is left of them after `grace`.
  void stop(int signal, std::chrono::milliseconds grace);

 private:
  struct Process {
    std::string who;
    pid_t id = 0;
    FileDescriptor ended;  // readable then; empty where the kernel has no such thing
    std::optional<ProcessEnd> end;
  };
  void start(const Part& part, const Path& logs, const std::string& name);
  void wait_for_an_end(std::chrono::milliseconds wait);
  void reap();
  void reap(Process& process);

  std::string mark_;
  std::vector<Process> processes_;  // the worker's is the first
};

}  // namespace dtrain::external
