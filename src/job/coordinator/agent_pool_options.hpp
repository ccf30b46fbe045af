// The agent pool's options for a job: what its workers start with, how far they go without a coordinator, and who sees
// their output.
#pragma once

#include <string>

#include <dtrain/elastic/agent.hpp>
#include <dtrain/elastic/network_agent_pool.hpp>

#include "job/spec/job_folder.hpp"
#include "job_work.hpp"

namespace dtrain::job {

// `order`: null for the first coordinator. Where a user's terminal or pipe waits, `work` gets the output of the
// workers, and must outlive the pool. A coordinator that has only a log of its own does not take it: each worker has
// one, too.
elastic::NetworkAgentPoolOptions agent_pool_options(JobWork& work, const JobFolder& folder,
                                                    const elastic::CoordinatorOrder* order, const std::string& token,
                                                    elastic::Term term);

}  // namespace dtrain::job
