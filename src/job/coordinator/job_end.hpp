// How a job ends for the user: the exit code, the error and the hint that follow from the coordinator's last decision.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/elastic/policy.hpp>

#include "job/spec/job_folder.hpp"
#include "job_work.hpp"

namespace dtrain::job {

struct JobEnd {
  elastic::Finish finish;
  std::optional<elastic::Failure> first_failure;
  int signals = 0;  // stop signals received
  int signal = 0;   // the first of them; 0: none
  // A user asked for the stop, and expects that it saves. Else the job may have ended for want of workers, and is worth
  // continuing from its last checkpoint although steps are lost.
  bool asked = false;
};

// Returns ok for a complete job, after JobWork::end(). Throws Stopped if the job can be resumed, Interrupted if a
// signal ended it and nothing was saved, and otherwise an Error with the exit code of the failure; reports the first
// failure.
ExitCode conclude(const JobEnd& end, JobWork& work, const JobFolder& folder, Reporter& reporter);

// Whether the exit code of the job is that of its program, which failed.
bool is_failure_of_program(const JobEnd& end, const JobWork& work);

// Writes why the job ended to the log of a coordinator that no user waits for, also with --quiet: there is no other
// place for it.
void write_end(const Error& error, Reporter& reporter);

// In the pod of a Kubernetes Job, where a command asked for the stop: throws `error` with exit code kStoppedInPod or
// kStoppedUnsavedInPod, after which the Job makes no next pod. Kubernetes itself ends pods by a signal and replaces
// them.
void refuse_next_pod(const Error& error, const JobEnd& end);

// The agents chose another coordinator, and the job goes on under it.
class Replaced : public Error {
 public:
  Replaced(const std::string& what, const JobFolder& folder);
  std::string_view kind() const override { return "replaced"; }
};

// Throws Replaced where coordinator.json holds a higher term.
void refuse_if_replaced(const JobFolder& folder, std::uint64_t term);

}  // namespace dtrain::job
