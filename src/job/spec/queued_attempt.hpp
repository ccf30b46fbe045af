// What the process of an attempt of a queued job does differently from a command of the user.
#pragma once

#include <dtrain/base/error.hpp>
#include <dtrain/net/aws.hpp>

namespace dtrain::job {

// Set for the process of an attempt: the job's folder in the queue.
inline constexpr const char* kManagedVariable = "DTRAIN_MANAGED_JOB";

// Does the work. Credentials may come back, as those of an expired role do. In an attempt NoCredentials therefore
// becomes a RemoteError, after which the queue tries again; as the UsageError that it is, it would end the job.
template <typename Work>
auto with_passing_refusals(bool is_attempt, const Work& work) {
  try {
    return work();
  } catch (const net::NoCredentials& error) {
    if (!is_attempt) throw;
    throw RemoteError(error.what(), error.hint());
  }
}

}  // namespace dtrain::job
