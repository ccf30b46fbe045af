// Going on without a terminal.
#pragma once

#include <functional>
#include <optional>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// One of the two processes that detach() returns in.
struct Detached {
  // In the process that goes on: to be called once the job runs; does nothing the second time.
  std::function<void()> tell_running;
  // In the process that the person started: how the other one did, once it runs or ended.
  struct Outcome {
    bool runs = false;
    std::int64_t pid = 0;
    int exit_code = 0;  // where it does not run
    std::string said;   // what it wrote until then
  };
  std::optional<Outcome> outcome;
};

// Forks, so no other thread may run yet. The one that goes on has a session of its own, no input, and writes what it
// says to logs/coordinator.log of the folder. Throws Error when the folder or the process cannot be made, and
// Interrupted when the person stops waiting: then the other process is told to stop too.
Detached detach(const JobFolder& folder);

}  // namespace dtrain::job
