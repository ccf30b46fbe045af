// A training program of any framework as the worker of a job: its command, its environment, and how it is asked to end.
#pragma once

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>

namespace dtrain::external {

struct Program {
  std::vector<std::string> command{};  // argv, byte for byte; the first word is looked up in PATH
  // Replace {rank}, {role}, {task_index}, {ps_hosts} and {worker_hosts} in the command, for scripts of TensorFlow 1.
  bool fills_placeholders = false;
  int servers = 0;  // parameter servers beside the workers; they run the same command
  // NAME=value, added to the host's environment and the variables of the rank.
  std::vector<std::string> environment{}, worker_environment{}, server_environment{};
  bool elastic = false;  // ranks may come and go
  int stop_signal = SIGTERM;
  std::chrono::milliseconds grace{10'000};  // between that signal and SIGKILL
  // Failures of all ranks together before the job fails. Changes of hosts do not count.
  int max_restarts = 0;
  // Failures without progress between them before the job ends as stuck; 0: no limit.
  int fruitless_limit = 0;
  std::string job{};  // a name of this run of the job, the same on all ranks
};

Json to_json(const Program& program);
Program program_from_json(const Json& json);  // throws DataError

}  // namespace dtrain::external
