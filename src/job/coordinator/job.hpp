// Runs a job on several workers: this process coordinates, and computes nothing.
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
  bool chose_number = false;  // the user gave -n
  bool resume = false;
  // With --launcher folder: a job that runs in the folder already is followed to its end.
  bool follows = false;
};
// Called in the coordinating process before anything is written. Throws errors that the user must see first.
using MakeWork =
    std::function<std::unique_ptr<JobWork>(const elastic::HostList&, const JobFolder& folder, Reporter& reporter)>;

// Returns when the job is over. Throws Stopped if it can be resumed, and Error with the first failure otherwise. If
// another coordinator takes over, this process shows its log, passes stop signals on, and returns the job's exit code.
ExitCode run_job(const JobStart& start, const MakeWork& make_work, Reporter& reporter);
// Runs the job as its next coordinator, which first prints its port.
ExitCode take_over(const elastic::CoordinatorOrder& order, Reporter& reporter);

}  // namespace dtrain::job
