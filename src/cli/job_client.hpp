// What commands ask the coordinator of a running job.
#pragma once

#include <dtrain/base/json.hpp>

#include "job_folder.hpp"

namespace dtrain::cli {

// The answer to {"ask": ..., ...}. Throws UsageError when no job ever ran in the folder or the coordinator refuses,
// Error when the job is over, RemoteError when the coordinator is gone or does not answer in time.
Json ask_coordinator(const JobFolder& folder, const Json& request);

}  // namespace dtrain::cli
