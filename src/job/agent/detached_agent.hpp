// An agent that outlives the connection over which it was started.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>

namespace dtrain::job {

// What detach_agent() returns in each of two processes.
struct DetachedAgent {
  // In the agent: called once it has joined. From then on its output goes to the log.
  std::function<void()> report_joined;
  // In the process that was started: the outcome of the agent. Until the agent has joined, its errors go to the stderr
  // of this process.
  std::optional<ExitCode> outcome;
};

// Forks, so no other thread may run. The agent runs in a session of its own, below a supervisor process that waits for
// it, then ends every process that carries `mark`, and exits with it: a killed agent leaves nothing behind. If the
// supervisor is killed, the agent gets SIGTERM. Processes that carry `spared_mark` instead live on. If the log cannot
// be written, the agent runs without it.
DetachedAgent detach_agent(const std::string& mark, const std::string& spared_mark, const Path& log);

}  // namespace dtrain::job
