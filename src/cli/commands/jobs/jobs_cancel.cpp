#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>

#include "cli/command.hpp"
#include "queue_choice.hpp"

namespace dtrain::cli {
namespace {

struct JobsCancelCommand {
  QueueChoice queue;
  int job = 0;
  bool now = false;
};

void bind(config::OptionSet& set, JobsCancelCommand& options) {
  bind_job_number(set, options.job);
  bind_queue(set, options.queue);
  set.add("--now", options.now, "kill all processes of the job at once, without a checkpoint").flag_only = true;
}

ExitCode act(const JobsCancelCommand& options, const config::OptionSet& set, Reporter& reporter) {
  watch_stop_signals();
  job::JobQueue queue = open_queue(options.queue, set);
  if (!queue.cancel(options.job, options.now)) {
    reporter.note(fmt::format("job {} is being cancelled already; waits for its end", options.job));
  }
  const bool has_runner = queue.has_runner();
  const job::QueuedJob job = has_runner ? wait_for_job(queue, options.job) : queue.at(options.job);
  if (reporter.json()) {
    reporter.answer_json(job_document(job));
    return ExitCode::ok;
  }
  if (!has_runner) {
    reporter.answer(fmt::format("job {} will be cancelled by the next runner of the queue", options.job));
    return ExitCode::ok;
  }
  reporter.answer(
      fmt::format("job {}: {}{}", job.number, state_name(job), job.record.why.empty() ? "" : " " + job.record.why));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_jobs_cancel() {
  auto command = make_command<JobsCancelCommand>(
      "jobs cancel", "end a job of a queue for good; one that runs saves a checkpoint first", act);
  command->examples = {"dtrain jobs cancel 7 --cluster demo", "dtrain jobs cancel 7 --now"};
  command->see_also = {"jobs list", "stop"};
  return command;
}

}  // namespace dtrain::cli
