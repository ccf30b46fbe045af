// What commands ask the coordinator of a running job.
#pragma once

#include <dtrain/base/json.hpp>

#include "job_folder.hpp"

namespace dtrain::job {

// The answer to {"ask": ..., ...}. Throws UsageError when no job ever ran in the folder or the coordinator refuses,
// Error when the job is over, RemoteError when the coordinator is gone or does not answer in time.
Json ask_coordinator(const JobFolder& folder, const Json& request);
// The answer of whoever wrote the file to these bytes. Throws RemoteError.
std::string converse(const CoordinatorFile& file, const std::string& request);
// Whether the coordinator that wrote the file still answers, from wherever it runs. Blocks for at most some seconds.
bool answers(const CoordinatorFile& file);
// A job that survives its coordinator runs there, or one may be about to take over: waits until it is certain.
bool is_alive(const JobFolder& folder);

}  // namespace dtrain::job
