// An agent below the process that a process starter (mpirun, srun, qrsh) started: to the starter, that process is the
// agent.
#pragma once

#include <optional>
#include <string>

#include <dtrain/base/error.hpp>

namespace dtrain::job {

// Forks, so no other thread may run. Returns nullopt in the agent, in a session of its own. The process that was
// started stays as supervisor: it forwards signals, and when the agent has ended, in whatever way, ends every process
// that carries `mark`. It waits for processes that carry `spared_mark`, because the starter would end them with this
// process. Returns the outcome of the agent. If this process is killed, the agent gets SIGTERM.
std::optional<ExitCode> supervise_agent(const std::string& mark, const std::string& spared_mark);

}  // namespace dtrain::job
