// The coordinator's process at work: agents and workers on the network, membership decided, what they report shown.
#pragma once

#include <functional>
#include <memory>

#include <dtrain/elastic/agent.hpp>

#include "job/spec/job_folder.hpp"
#include "job_work.hpp"

namespace dtrain::job {

class JobRun {
 public:
  // Borrows all. The folder is there and this process coordinates it. `workers`: of the start.
  JobRun(JobWork& work, int workers, const JobFolder& folder, Reporter& reporter);
  // Takes over from a coordinator that was lost.
  JobRun(JobWork& work, const JobFolder& folder, const elastic::CoordinatorOrder& order, Reporter& reporter);
  ~JobRun();
  // Blocks. `tell_running` is called once the first step is done. Returns ok when training is complete; throws
  // Stopped when the job can be resumed, else an Error that tells the first failure.
  ExitCode until_over(const std::function<void()>& tell_running);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::job
