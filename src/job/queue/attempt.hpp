// One attempt of a managed job: a process of this program that trains or launches, and what its job folder shows.
//
// The process is a session of its own and outlives the runner that started it. It holds attempt.lock until it ends, so
// that the next runner sees whether it lives. An elastic job may outlive the process as well: a coordinator that took
// over from it then counts as the attempt.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/wait_status.hpp>

#include "decide_jobs.hpp"
#include "job/logs/job_life.hpp"
#include "job/spec/queued_attempt.hpp"
#include "job_queue.hpp"

namespace dtrain::job {

// Options of the attempt that are weaker than those of its command line.
inline constexpr const char* kAttemptJobDir = "DTRAIN_JOB_DIR";
inline constexpr const char* kAttemptResume = "DTRAIN_RESUME";
inline constexpr const char* kAttemptResetHosts = "DTRAIN_RESET_HOSTS";

class Attempt {
 public:
  // The attempt that the record describes, whoever started it.
  explicit Attempt(QueuedJob job) : job_(std::move(job)) {}

  // Starts the process. What keeps it from starting is how the attempt ended.
  void start();
  AttemptSeen look();
  // Asks the job to end for this reason, with a checkpoint unless `now`. The same wish is passed on again after a
  // while. Throws nothing: a job that cannot be asked yet gets a signal.
  void stop(const std::string& reason, bool now);

 private:
  AttemptSeen ended(int code, std::string cause) const;
  AttemptSeen after_process();
  // Whether a coordinator of this attempt goes on without the process.
  bool has_successor(const CoordinatorFile& file);
  // Those of the attempt that may be signalled; empty: they run on another machine, whose lock the file server may
  // still hold.
  std::vector<pid_t> processes_here() const;
  std::string progress() const;
  std::string last_error() const;

  const QueuedJob job_;
  pid_t child_ = 0;                  // 0: none, or of another runner
  std::optional<ProcessEnd> end_{};  // of child_
  std::string not_started_{};        // why; empty: it was started
  std::optional<JobLife> successor_{};
  bool asked_now_ = false;
  std::chrono::steady_clock::time_point next_ask_{};
};

// Whether the attempt that is to start continues the checkpoints under the job's prefix: those that an earlier attempt
// of this job saved, and none of another run. Throws Error where the prefix cannot be read.
bool resumes_own(const QueuedJob& job);

// The newest coordinator that the folder of a job names; 0: none.
std::uint64_t last_term_in(const JobFolder& folder);

}  // namespace dtrain::job
