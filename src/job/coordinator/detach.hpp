// Continues the job in the background, without the terminal.
#pragma once

#include <functional>
#include <optional>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// What detach() returns in each of two processes.
struct Detached {
  // In the background process: called once the job runs; later calls do nothing.
  std::function<void()> tell_running;
  // In the process that the user started: the outcome of the other one, once the job runs or has ended.
  struct Outcome {
    bool runs = false;
    std::int64_t pid = 0;
    int exit_code = 0;  // if it does not run
    std::string said;   // its output until then
  };
  std::optional<Outcome> outcome;
};

// Forks, so no other thread may run. The background process has a session of its own, no input, and writes its output
// to logs/coordinator.log of the folder. Throws Error if the folder or the process cannot be made, and Interrupted if
// the user stops waiting; the background process is then asked to stop too.
Detached detach(const JobFolder& folder);

}  // namespace dtrain::job
