// A training that the tests disturb, and a check of its result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim_job.hpp"

namespace dtrain::world {

class CheckedTraining {
 public:
  virtual ~CheckedTraining() = default;
  // Trains one worker; called from many threads at once, until the job is over.
  virtual elastic::Left::How train(elastic::Membership& membership, const WorkerFacts& worker) = 0;
  // Samples of the whole run, those of each epoch counted again.
  virtual std::uint64_t samples() const = 0;
  // After the job: empty, or what is wrong. All workers that finished must hold the bits of an undisturbed run, and
  // every epoch must have consumed every sample once.
  virtual std::string verify() const = 0;
};

// A job that runs the training, which must outlive it.
class CheckedJob {
 public:
  CheckedJob(CheckedTraining& training, const std::vector<std::string>& hosts,
             const elastic::Policy& policy = quick_policy(), SimOptions options = {});
  // Runs the job to its end, which must be a good one. Returns the result of verify(), with the job's last events.
  std::string run(const std::function<void(SimJob&)>& act = {});
  SimJob& job() { return job_; }

 private:
  CheckedTraining& training_;
  SimJob job_;
};

// The number of random schedules: DTRAIN_WORLD_SEEDS, or a number that takes seconds.
std::uint32_t seeds();
// True when the slow checks are wanted too.
bool is_thorough();

}  // namespace dtrain::world
