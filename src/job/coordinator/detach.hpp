// Continues the job in the background, without the terminal.
#pragma once

#include <functional>
#include <optional>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// What detach() returns in each of two processes.
struct Detached {
  // In the background process: called once it coordinates the job. From then on its output goes to
  // logs/coordinator.log, after what it said before.
  std::function<void()> take_log;
  // In the background process, after take_log(): called once the job runs; later calls do nothing.
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

// Forks, so no other thread may run. The background process has a session of its own and no input. Its output stays in
// memory until take_log(), as another process may coordinate the job and write its log; what it says where it ends
// before is appended to the log only if no such job is recorded. Throws Error if the folder or the process cannot be
// made, and Interrupted if the user stops waiting; the background process is then asked to stop too.
Detached detach(const JobFolder& folder);

}  // namespace dtrain::job
