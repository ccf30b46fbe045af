// An agent that must outlive the connection over which it was started.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>

namespace dtrain::job {

// One of the two processes that go_apart() returns in.
struct Apart {
  // In the agent: to be called once it joined. From then on what it says goes to the log.
  std::function<void()> tell_joined;
  // In the process that was started: how the agent did. Before it joined it says on this process's stderr what is
  // wrong.
  std::optional<ExitCode> outcome;
};

// Forks, so no other thread may run yet. The agent runs in a session of its own below a keeper, a process that ends all
// that carries the mark when the agent has ended, and ends with it: an agent that is killed leaves nothing behind. When
// the keeper is killed the agent is told to end. What carries the spared mark instead lives on. A log that cannot be
// written is done without.
Apart go_apart(const std::string& mark, const std::string& spared_mark, const Path& log);

}  // namespace dtrain::job
