// Whether a job goes on, as its folder and its coordinator show it to other processes.
#pragma once

#include <chrono>
#include <optional>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

class JobLife {
 public:
  explicit JobLife(JobFolder folder) : folder_(std::move(folder)) {}

  // False: the job is over, or its record is gone. Looks for the coordinator every few seconds, and throws RemoteError
  // when none was found for so long that no other one is to come, and Error when the folder was unreadable for so long.
  bool goes_on();
  // A sign of life of the job was seen elsewhere.
  void heard() { alive_ = std::chrono::steady_clock::now(); }
  bool is_over() const;
  // The record of the coordinator; nullopt: there is none. Throws Error where the folder cannot be read.
  std::optional<CoordinatorFile> record() const;

 private:
  const JobFolder folder_;
  std::chrono::steady_clock::time_point alive_ = std::chrono::steady_clock::now(), look_{};
};

}  // namespace dtrain::job
