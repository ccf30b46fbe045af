// The processes of one rank in one generation: started together, watched, ended together.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/external/run_program.hpp>

#include "rank_processes.hpp"
#include "server_log.hpp"

namespace dtrain::external {

// Used by one thread. The kernel kills the processes when that thread ends, also when it is killed. All other children
// of this process count as adopted: watch() and stop() reap those that have ended.
class Processes {
 public:
  // Starts all. The worker writes to this process's standard output and error; the others to files in `logs` that begin
  // with `name`. Throws Error when one cannot be started, after it ended those before it.
  Processes(const std::vector<RankProcess>& processes, Path logs, std::string name, std::string mark);
  ~Processes();
  Processes(const Processes&) = delete;

  // Starts one more, as the constructor does. Throws Error.
  void add(const RankProcess& process) { start(process); }

  // Sends this signal to the worker's own process, not to its group, unless it has ended.
  void signal_worker(int signal);

  // Waits up to `wait` for a process to end. Returns the first failure of the worker or of another process. What a
  // process leaves in its group has half a second to end by itself, much less after a failure, and is killed then.
  struct Failure {
    std::string who;  // "its program", "its ps 1"
    ProcessEnd end;
  };
  std::optional<Failure> watch(std::chrono::milliseconds wait);
  bool worker_done() const { return processes_.front().end.has_value(); }
  bool all_done() const;

  // Sends the signal to all that run, with their process groups, and SIGKILL to the rest after `grace`. A program that
  // runs under a shell has the whole grace too, although the signal ends the shell at once.
  void stop(int signal, std::chrono::milliseconds grace);

 private:
  struct Process {
    std::string who;
    pid_t id = 0;
    FileDescriptor ended;  // readable when it has ended; empty without pidfd_open
    std::optional<ProcessEnd> end;
    std::unique_ptr<ServerLog> log;  // null: a worker
    pid_t member = 0;                // it has ended, but this one of its group still runs
    std::chrono::steady_clock::time_point seen_ended{};
  };
  void start(const RankProcess& process);
  void wait_for_an_end(std::chrono::milliseconds wait);
  void reap();
  void reap_whole_groups();
  void reap_settled();
  void reap_orphans();
  void reap(Process& process);

  const Path logs_;
  const std::string name_, mark_;
  std::vector<Process> processes_;  // the worker first
};

}  // namespace dtrain::external
