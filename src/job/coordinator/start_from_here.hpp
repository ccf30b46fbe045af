// A newcomer's agent, started by whoever adds the host: the coordinator may have no key any more, as when the agent
// that was forwarded to it is gone.
#pragma once

#include <string>

#include <dtrain/base/reporter.hpp>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// Adds the host of this line of host_worker and starts its agent from here. False, and nothing is done: the job is not
// one over ssh, or this machine cannot log in there either or lacks the files that hosts get, so that starting it is
// the coordinator's affair. An agent that does not start is a warning: the coordinator tries by itself.
bool add_and_start(const JobFolder& folder, const std::string& line, Reporter& reporter);

}  // namespace dtrain::job
