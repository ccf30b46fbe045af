// A worker of a job whose program is not dtrain's own: it starts the program, and speaks for it.
#pragma once

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/agent.hpp>

#include "agent_link.hpp"
#include "config/run_spec.hpp"

namespace dtrain::job {

ExitCode run_program_worker(const elastic::WorkerJob& me, const config::ProgramSpec& spec, AgentLink& link);

}  // namespace dtrain::job
