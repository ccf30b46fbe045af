#include "job_policy.hpp"

#include <algorithm>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
// Time for an agent to report the result of the admission check.
constexpr auto kAdmissionSlack = 30s;
constexpr elastic::Duration kLeastSilence = 3s;
constexpr elastic::Duration kSilenceWithoutSuccessor = 60s;
// Stands for a wait without limit.
constexpr auto kTenYears = std::chrono::hours(24 * 3650);

elastic::Duration rounded(config::Seconds time) { return std::chrono::duration_cast<elastic::Duration>(time); }

elastic::AdmissionCheckFor admission_check_for(const config::JobOptions& job) {
  if (job.prepare_all) return elastic::AdmissionCheckFor::all_hosts;
  return job.elastic ? elastic::AdmissionCheckFor::new_hosts : elastic::AdmissionCheckFor::none;
}

}  // namespace

elastic::AdmissionCheckOptions admission_check_options(const config::JobOptions& job) {
  return {.prepare = job.prepare, .prepare_timeout = rounded(job.prepare_timeout)};
}

elastic::Policy policy_of(const config::JobOptions& job) {
  elastic::Policy policy;
  policy.elastic = job.elastic;
  policy.boundary = job.boundary;
  policy.min_workers = job.min_workers;
  if (job.elastic) policy.max_workers = job.max_workers;
  policy.allow_mass_remove = job.allow_mass_remove;
  policy.heartbeat_timeout = rounded(job.heartbeat_timeout);
  policy.allow_mixed_hardware = job.mixed_hardware;
  policy.admission_check = admission_check_for(job);
  const elastic::AdmissionCheckOptions admission_check = admission_check_options(job);
  policy.admission_timeout = admission_check.prepare_timeout + admission_check.check_timeout + kAdmissionSlack;
  if (job.is_on_other_machines()) policy.host_timeout = kRemoteStart;
  policy.quorum = job.outlives_coordinator();
  policy.hold_timeout = job.hold_timeout.count() > 0 ? rounded(job.hold_timeout) : elastic::Duration(kTenYears);
  return policy;
}

elastic::Policy policy_of(const JobWork& work) {
  elastic::Policy policy = policy_of(work.job());
  work.adjust(policy);
  return policy;
}

elastic::Duration agent_silence(const elastic::Policy& policy) {
  return std::max(kLeastSilence, policy.heartbeat_timeout);
}

// Where no other coordinator could take over, haste gains nothing: a process that ends closes its connections, and the
// kernel notices a machine that is gone. What is left are pauses, such as those of a file server.
elastic::Duration connection_silence(const config::JobOptions& job, const elastic::Policy& policy) {
  if (job.outlives_coordinator()) return agent_silence(policy);
  return job.is_on_other_machines() ? std::max(kSilenceWithoutSuccessor, policy.heartbeat_timeout) : 0s;
}

}  // namespace dtrain::job
