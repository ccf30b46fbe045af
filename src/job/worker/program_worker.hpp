// A worker that starts another program as its rank, and speaks to the coordinator for it.
#pragma once

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/agent.hpp>

#include "agent_link.hpp"
#include "config/run_spec.hpp"

namespace dtrain::job {

ExitCode run_program_worker(const elastic::WorkerJob& me, const config::ProgramSpec& spec, AgentLink& link);

}  // namespace dtrain::job
