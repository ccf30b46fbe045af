// A training that world tests disturb, and what it must end with whatever happened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim_job.hpp"

namespace dtrain::world {

class Trial {
 public:
  virtual ~Trial() = default;
  // One worker's part; called from many threads at once, until the job is over.
  virtual elastic::Left::How train(elastic::Membership& membership, const WorkerFacts& worker) = 0;
  // Samples of the whole run, each epoch's counted again.
  virtual std::uint64_t samples() const = 0;
  // After the job: empty, or what is wrong. Right is: all who finished hold the bits of an undisturbed run, and every
  // epoch consumed every sample once.
  virtual std::string judge() const = 0;
};

// A job of the trial; it must outlive this.
class TrialJob {
 public:
  TrialJob(Trial& trial, const std::vector<std::string>& hosts, const elastic::Policy& policy = quick_policy(),
           SimOptions options = {});
  // To its end, which must be a good one; then the trial's judgement, with the job's last events.
  std::string run(const std::function<void(SimJob&)>& act = {});
  SimJob& job() { return job_; }

 private:
  Trial& trial_;
  SimJob job_;
};

// How many random schedules: DTRAIN_WORLD_SEEDS, or a number that takes seconds.
std::uint32_t seeds();
// The slow evidence is wanted too.
bool is_thorough();

}  // namespace dtrain::world
