// Starts the agent of a new host from the machine of the `hosts add` command: the coordinator may have no ssh key, for
// instance when the ssh agent that was forwarded to it is gone.
#pragma once

#include <string>

#include <dtrain/base/reporter.hpp>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// Adds the host of this line of host_worker, and starts its agent from here. Returns false, with nothing done, if the
// job does not use ssh or is another user's, or this machine cannot log in there, or it lacks the files that hosts get:
// then the coordinator starts the agent. If the start fails, a warning is shown and the coordinator retries.
bool add_and_start(const JobFolder& folder, const std::string& line, Reporter& reporter);

}  // namespace dtrain::job
