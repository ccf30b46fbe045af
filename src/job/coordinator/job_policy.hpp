// The coordinator's settings for a job, derived from its options. Pure functions.
#pragma once

#include <dtrain/elastic/admission_check.hpp>
#include <dtrain/elastic/policy.hpp>

#include "config/job_options.hpp"
#include "job_work.hpp"

namespace dtrain::job {

// Time for an agent on another machine. The launcher's own deadlines are shorter, but it may have to copy the program
// first.
constexpr std::chrono::minutes kRemoteStart{10};

// The admission check of hosts.
elastic::AdmissionCheckOptions admission_check_options(const config::JobOptions& job);
// The rules by which the coordinator decides.
elastic::Policy policy_of(const config::JobOptions& job);
// The same with the changes that the work asks for.
elastic::Policy policy_of(const JobWork& work);
// Silence after which an agent, or for the agents the coordinator, counts as lost in a job whose coordinator can be
// replaced.
elastic::Duration agent_silence(const elastic::Policy& policy);
// The same for any job; 0: only a connection that closes counts.
elastic::Duration connection_silence(const config::JobOptions& job, const elastic::Policy& policy);

}  // namespace dtrain::job
