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
  // Why no job may run now; empty: jobs may run.
  std::function<std::string()> hold = [] { return std::string(); };
  std::function<bool()> is_over = [] { return false; };  // true: the queue needs no runner any more
};

// Runs until a stop signal comes, or the queue is over; the job that is under way then goes on, and the next runner
// finds it. One runner acts on a queue; another one waits for its end. Throws Error if the folder cannot be made; what
// fails later is a note, and is tried again.
void run_queue(const RunnerOptions& options);

}  // namespace dtrain::job
