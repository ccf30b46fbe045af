// One worker of a job: a process that an agent started. All its settings come from the agent, as a document.
#pragma once

#include <dtrain/base/error.hpp>
#include <dtrain/base/reporter.hpp>

namespace dtrain::job {

// Trains until it is done, removed or stopped. The agent's socket is elastic::kWorkerSocket.
ExitCode run_worker(Reporter& reporter);

}  // namespace dtrain::job
