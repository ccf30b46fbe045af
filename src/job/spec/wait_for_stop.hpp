// Stops a job with a checkpoint, and waits until it has ended.
#pragma once

#include <string>

#include <dtrain/base/error.hpp>

#include "job_folder.hpp"

namespace dtrain::job {

// Until the job of the folder is over, or its coordinator is gone for good. Throws Interrupted after a signal, and
// Error when a job takes longer than any job needs for a checkpoint.
void wait_until_over(const JobFolder& folder);

// How a stop ended; the worst is the last.
enum class StopOutcome { no_job, resumable, unsaved };
StopOutcome stop_outcome(ExitCode of_job);
// Stops the job of the folder, for this reason, and waits until it is over. A coordinator that does not answer may have
// a successor, which is waited for. Throws as wait_until_over(), and Error if the job may run and cannot be asked.
StopOutcome stop_job_in(const JobFolder& folder, const std::string& why);

}  // namespace dtrain::job
