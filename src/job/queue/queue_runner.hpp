// The runner of a queue: starts its jobs one after the other, and again after losses.
#pragma once

#include <functional>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::job {

struct RunnerOptions {
  Path queue{};
  std::string cluster{};  // empty: jobs run on this machine
  std::function<void(const std::string&)> on_note = [](const std::string&) {};
  // The functions below may throw: what cannot be known is a note, and is asked again.
  // Why no job may run now; empty: jobs may run. While it throws, no job starts, and those that run go on.
  std::function<std::string()> hold = [] { return std::string(); };
  std::function<bool()> is_over = [] { return false; };  // true: the queue needs no runner any more
  bool until_empty = false;                              // ends once all jobs that it may run are over
};

enum class RunnerEnd { stopped, queue_is_empty };

// Runs until a stop signal comes, or the queue is over; the job that is under way then goes on, and the next runner
// finds it. With until_empty it ends as well when no job is left to run. One runner acts on a queue; another one waits
// for its end. Throws Error if the folder cannot be made; what fails later is a note, and is tried again.
RunnerEnd run_queue(const RunnerOptions& options);

}  // namespace dtrain::job
