// A job on several workers: this process coordinates, and does none of their work.
#pragma once

#include <functional>
#include <memory>

#include <dtrain/base/reporter.hpp>
#include <dtrain/elastic/agent.hpp>

#include "job/spec/host_list.hpp"
#include "job_work.hpp"

namespace dtrain::job {

struct JobStart {
  const config::JobOptions& job;
  bool chose_number = false;  // the person gave -n
  bool resume = false;
};
// Called in the process that coordinates, before anything is written. Throws what a person must know.
using MakeWork =
    std::function<std::unique_ptr<JobWork>(const elastic::HostList&, const JobFolder& folder, Reporter& reporter)>;

// Until the job is over. Throws Stopped when it can be resumed, Error with the first failure when it cannot go on.
ExitCode run_job(const JobStart& start, const MakeWork& make_work, Reporter& reporter);
// The same as a job's next coordinator: its port is the answer, and comes first.
ExitCode take_over(const elastic::CoordinatorOrder& order, Reporter& reporter);

}  // namespace dtrain::job
