// A training program of any framework as the worker of a job: its command, its environment, and how it is asked to end.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::external {

// A rank that joins a running job and fails within this time is its host's fault: it lacks a package, a file or a GPU.
// The others start again without it, and no failure is counted.
constexpr std::chrono::minutes kTrial{2};

struct Program {
  std::vector<std::string> command{};  // argv, byte for byte; the first word is looked up in PATH
  // Replace {rank}, {local_rank}, {role}, {task_index}, {ps_hosts} and {worker_hosts} in the command, for scripts of
  // TensorFlow 1.
  bool fills_placeholders = false;
  int servers = 0;  // parameter servers beside the workers; they run the same command
  // Frameworks that need more than variables, or variables that other programs would misunderstand.
  bool horovod = false;   // rank 0 serves the rendezvous
  bool jax = false;       // jax.distributed.initialize() finds all its arguments
  int gpus_per_rank = 0;  // a worker sees so many GPUs, those of its local rank; 0: all of its machine
  // NAME=value, added to the host's environment and the variables of the rank.
  std::vector<std::string> environment{}, worker_environment{}, server_environment{};
  int stop_signal = SIGTERM;
  int interrupt_signal = SIGINT;  // in its place where the user interrupted the job
  // Sent to the workers before a planned change of the ranks, so that the program can save its state; 0: none. The
  // change goes on once every worker has ended or written its saved_file(), or after the timeout.
  int save_signal = 0;
  std::chrono::milliseconds save_timeout{60'000};
  std::chrono::milliseconds grace{10'000};  // between the signal that ends it and SIGKILL
  // Failures of all ranks together before the job fails. Changes of hosts do not count.
  int max_restarts = 0;
  // Failures without progress between them before the job ends as stuck; 0: no limit.
  int fruitless_limit = 0;
  std::string job{};  // a name of this run of the job, the same on all ranks
};

// Whether a word of the command line with the file that it names, or the module of `python -m`, holds all of these
// words.
bool mentions(const std::vector<std::string>& command, const std::vector<std::string_view>& words);

// The number that a program of the job wrote into $DTRAIN_PROGRESS_FILE. 0: no file yet, or no number.
std::int64_t read_progress(const Path& job_folder);

// Whether dtrain and a program of the job inform each other through this file or folder. `place`: its path in the job
// folder. A program may write the files, but nothing that it will want later.
bool is_run_file(const Path& place, bool is_folder);

Json to_json(const Program& program);
Program program_from_json(const Json& json);  // throws DataError

}  // namespace dtrain::external
