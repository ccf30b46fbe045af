// What the verbs of `jobs` share: which queue, which job, and how a job is shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>

#include "config/option_set.hpp"
#include "job/queue/job_queue.hpp"

namespace dtrain::cli {

struct QueueChoice {
  std::optional<Path> folder;  // none: that of the cluster that this machine is in
};
void bind_queue(config::OptionSet& set, QueueChoice& choice);
// JOB, the number of a job.
void bind_job_number(config::OptionSet& set, int& number);

// As the user gave it: absolute then, and without the slash that a shell puts behind the name of a folder.
Path whole_folder(const Path& given);
// Throws UsageError if no queue is chosen, or the chosen folder does not exist.
job::JobQueue open_queue(const QueueChoice& choice, const config::OptionSet& set);

std::string state_name(const job::QueuedJob& job);  // "unreadable" for a job that this program cannot read
std::string time_text(std::int64_t seconds);        // UTC; "-" for 0
Json job_json(const job::QueuedJob& job);           // one of a list; exit_code is null until the job is over
Json job_document(const job::QueuedJob& job);       // schema dtrain.job/1

// Blocks until the job is over, and returns it. Throws Interrupted on a stop signal, DataError for a job that cannot be
// read.
job::QueuedJob wait_for_job(job::JobQueue& queue, int number);
// What the end of a job means for the command that waited for it.
ExitCode exit_code_of(const job::QueuedJob& job);

}  // namespace dtrain::cli
