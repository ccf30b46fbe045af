#include "agent_pool_options.hpp"

#include <fmt/format.h>

#include <dtrain/base/process.hpp>
#include <dtrain/net/addresses.hpp>

#include "credential_forwarder.hpp"
#include "job/spec/job_launcher.hpp"
#include "job_policy.hpp"

namespace dtrain::job {
namespace {

void set_surroundings(const JobWork& work, elastic::NetworkAgentPoolOptions& options) {
  const config::JobOptions& job = work.job();
  if (job.is_on_other_machines()) {
    options.bind_address = net::kAnyAddress;
    options.environment = travelling_environment(own_environment(), job.environment);
    if (work.uses_s3()) options.environment = with_variables(far_environment({}), *options.environment);
    options.keep_agents_environment = true;
    options.folder = job.sync_to;
    options.join_deadline = kRemoteStart;
  } else if (!job.environment.empty()) {
    options.environment = with_variables(own_environment(), job.environment);
  }
}

}  // namespace

elastic::NetworkAgentPoolOptions agent_pool_options(JobWork& work, const JobFolder& folder,
                                                    const elastic::CoordinatorOrder* order, const std::string& token,
                                                    elastic::Term term) {
  const config::JobOptions& job = work.job();
  const elastic::Policy policy = policy_of(work);
  elastic::NetworkAgentPoolOptions options{.token = token,
                                           .job_folder = std::filesystem::absolute(folder.path),
                                           .job = order ? order->document : work.document(),
                                           .admission_check = admission_check_options(job),
                                           .notice_url = job.notice_url};
  set_surroundings(work, options);
  options.silence = connection_silence(job, policy);
  options.term = term;
  options.outlive = job.outlives_coordinator();
  options.patience = policy.hold_timeout;
  options.grace = policy.worker_grace;
  const bool has_reader = !order && !job.detach;
  if (has_reader && work.shows_output()) {
    options.on_output = [&work](const std::string& host, int slot, OutputStream stream, std::string_view line) {
      work.show_output(fmt::format("{}.{}", host, slot), stream, line);
    };
  }
  return options;
}

}  // namespace dtrain::job
