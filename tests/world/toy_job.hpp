// A SimJob whose workers train the toy, and what it must end with.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "sim_job.hpp"
#include "toy_training.hpp"

namespace dtrain::world {

class ToyJob {
 public:
  ToyJob(std::vector<std::string> hosts, const ToyTask& task, const elastic::Policy& policy = quick_policy(),
         SimOptions options = {});
  SimJob& job() { return job_; }

  // Runs to the end and judges: empty when every worker that finished holds the bits of an undisturbed run and each
  // epoch consumed each sample once.
  std::string run_and_judge(const std::function<void(SimJob&)>& act = {});
  std::size_t finishers() const { return finished_.size(); }

 private:
  std::string judge() const;

  const ToyTask task_;
  ToyLedger ledger_;
  mutable std::mutex mutex_;  // guards finished_
  std::vector<ToyState> finished_;
  SimJob job_;  // last: its workers use all of the above
};

}  // namespace dtrain::world
