// Runs the coordinator's process: connects agents and workers, decides on membership, and shows reports.
#pragma once

#include <functional>
#include <memory>

#include <dtrain/elastic/agent.hpp>

#include "job/spec/job_folder.hpp"
#include "job_work.hpp"

namespace dtrain::job {

class JobRun {
 public:
  // Borrows everything. The folder exists, and this process holds its lock. `workers`: number at the start.
  JobRun(JobWork& work, int workers, const JobFolder& folder, Reporter& reporter);
  // Continues the job of a coordinator that was lost.
  JobRun(JobWork& work, const JobFolder& folder, const elastic::CoordinatorOrder& order, Reporter& reporter);
  ~JobRun();
  // Blocks until the job is over. `tell_running` is called after the first step. Returns ok when training is complete;
  // throws Stopped if the job can be resumed, Replaced if another coordinator leads it, otherwise an Error with the
  // first failure.
  ExitCode until_over(const std::function<void()>& tell_running);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::job
