// Waits for a job that was asked to stop.
#pragma once

#include "job_folder.hpp"

namespace dtrain::job {

// Until the job of the folder is over, or its coordinator is gone for good. Throws Interrupted after a signal, and
// Error when a job takes longer than any job needs for a checkpoint.
void wait_until_over(const JobFolder& folder);

}  // namespace dtrain::job
