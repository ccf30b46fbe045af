// Any training program as the worker of a job: what is started, with which environment, and how it is asked to end.
#pragma once

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>

namespace dtrain::external {

struct Program {
  std::vector<std::string> command{};  // argv, byte for byte; its first word is looked for in PATH
  // {rank}, {role}, {task_index}, {ps_hosts} and {worker_hosts} in it are replaced, as scripts of TensorFlow 1 want it.
  bool fills_placeholders = false;
  int servers = 0;  // parameter servers beside the workers, which run the same command
  // NAME=value, on top of what the host has and of what says which rank this is.
  std::vector<std::string> environment{}, worker_environment{}, server_environment{};
  bool elastic = false;  // ranks may come and go
  int stop_signal = SIGTERM;
  std::chrono::milliseconds grace{10'000};  // between that signal and SIGKILL
  // After failures of ranks: of all together, then the job fails. Hosts that come or go do not count.
  int max_restarts = 0;
  // The job ends as stuck after so many failures without progress between them; 0: never.
  int fruitless_limit = 0;
  std::string job{};  // a name of this run of the job, the same on all ranks
};

Json to_json(const Program& program);
Program program_from_json(const Json& json);  // throws DataError

}  // namespace dtrain::external
