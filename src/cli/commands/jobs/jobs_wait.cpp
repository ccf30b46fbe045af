#include <fmt/format.h>

#include <dtrain/base/stop.hpp>

#include "cli/command.hpp"
#include "queue_choice.hpp"

namespace dtrain::cli {
namespace {

struct JobsWaitCommand {
  QueueChoice queue;
  std::optional<int> job;
};

void bind(config::OptionSet& set, JobsWaitCommand& options) {
  set.add("JOB", options.job, "JOB",
          "number of the job, as shown by `dtrain jobs list` (default all jobs of the queue)", config::at_least(1));
  bind_queue(set, options.queue);
}

// The chosen job, or all that can be read.
std::vector<job::QueuedJob> jobs_of(job::JobQueue& queue, const std::optional<int>& chosen) {
  if (chosen) return {queue.at(*chosen)};
  std::vector<job::QueuedJob> jobs = queue.read();
  std::erase_if(jobs, [](const job::QueuedJob& job) { return !job.spec; });
  return jobs;
}

// The exit code of the first job that did not end well.
ExitCode act(const JobsWaitCommand& options, const config::OptionSet& set, Reporter& reporter) {
  watch_stop_signals();
  job::JobQueue queue = open_queue(options.queue, set);
  ExitCode code = ExitCode::ok;
  Json list = Json::array();
  for (job::QueuedJob& job : jobs_of(queue, options.job)) {
    if (!job.record.is_over()) job = wait_for_job(queue, job.number);
    if (code == ExitCode::ok) code = exit_code_of(job);
    list.push_back(job_json(job));
    if (reporter.json()) continue;
    reporter.answer(
        fmt::format("job {}: {}{}", job.number, state_name(job), job.record.why.empty() ? "" : ": " + job.record.why));
    reporter.flush();
  }
  if (reporter.json()) reporter.answer_json(Json::object({{"schema", "dtrain.jobs-wait/1"}, {"jobs", list}}));
  return code;
}

}  // namespace

std::unique_ptr<Command> make_jobs_wait() {
  auto command = make_command<JobsWaitCommand>(
      "jobs wait", "wait until a job of a queue is over, and exit with its code; 75 if it was cancelled", act);
  command->examples = {"dtrain jobs wait 7 --cluster demo", "dtrain jobs wait --cluster demo"};
  command->see_also = {"jobs list", "jobs logs"};
  return command;
}

}  // namespace dtrain::cli
