// A command whose hosts a scheduler must grant first: it runs itself again in a job of that scheduler.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "config/job_options.hpp"

namespace dtrain::job {

// --launcher slurm or sge, and this process is in no job of theirs.
bool needs_scheduler(const config::JobOptions& options);

// Blocks until the job is over; what it says comes out here as it comes, and its exit code is returned. A stop signal
// asks the training to end, as `dtrain stop` does, a second one at once; while the job still waits for hosts it is
// cancelled. Throws UsageError for what cannot be asked for, Interrupted when a signal ended it without a checkpoint.
ExitCode run_under_scheduler(const config::JobOptions& options, bool chose_number, Reporter& reporter);

// What a job of Grid Engine runs: the command that a file holds, with that command's environment. The file is removed.
// Returns only by throwing Error.
[[noreturn]] void run_submitted(const Path& file);

}  // namespace dtrain::job
