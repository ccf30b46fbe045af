// Runs a command again inside a job of a scheduler, which must grant the hosts first.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "config/job_options.hpp"

namespace dtrain::job {

// True for --launcher slurm or sge outside of a job of theirs.
bool needs_scheduler(const config::JobOptions& options);

// Blocks until the job is over, passes its output through, and returns its exit code. A stop signal asks the training
// to end, as `dtrain stop` does; a second one ends it at once; a job that still waits for hosts is cancelled. Throws
// UsageError for invalid requests, and Interrupted if a signal ended it without a checkpoint.
ExitCode run_under_scheduler(const config::JobOptions& options, bool chose_number, Reporter& reporter);

// The command of a Grid Engine job: reads the submitted command and environment from the file, removes it, and replaces
// this process. Throws Error; does not return.
[[noreturn]] void run_submitted(const Path& file);

}  // namespace dtrain::job
