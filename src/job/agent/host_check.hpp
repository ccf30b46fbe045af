// The first look at a host that wants to join a job: `dtrain agent --check`, a process of its own so that a dead disk
// or network holds up nobody else.
#pragma once

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/reporter.hpp>

namespace dtrain::job {

// Answers one line: {"failure": "" or why this host is not fit, ...what was measured}. `job` is an elastic::WorkerJob.
ExitCode check_host(const Json& job, Reporter& reporter);

}  // namespace dtrain::job
