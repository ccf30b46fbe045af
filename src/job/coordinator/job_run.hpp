// Runs the coordinator's process: connects agents and workers, decides on membership, and shows reports.
#pragma once

#include <cstdint>
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
  // Continues the job of a coordinator that was lost. `tell_port` is called once, with the port for agents and
  // commands.
  JobRun(JobWork& work, const JobFolder& folder, const elastic::CoordinatorOrder& order,
         std::function<void(std::uint16_t)> tell_port, Reporter& reporter);
  ~JobRun();
  // Blocks until the job is over. `tell_running` is called after the first step. Returns ok when training is complete;
  // throws Stopped if the job can be resumed, Replaced if another coordinator leads it, otherwise an Error with the
  // first failure. Where no user waits for this process, because it took over or runs detached, it says in its log how
  // the job ended, and returns the exit code.
  ExitCode until_over(const std::function<void()>& tell_running);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::job
