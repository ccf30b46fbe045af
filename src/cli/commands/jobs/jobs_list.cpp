#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/printable.hpp"
#include "cli/table.hpp"
#include "queue_choice.hpp"

namespace dtrain::cli {
namespace {

struct JobsListCommand {
  QueueChoice queue;
};

void bind(config::OptionSet& set, JobsListCommand& options) { bind_queue(set, options.queue); }

// Submissions and runners leave these in a queue that has no job any more.
void require_queue(const Path& folder) {
  for (const char* name : {"submit.lock", "runner.lock", "last-number"}) {
    if (is_listed(folder / name)) return;
  }
  throw UsageError(
      fmt::format("--job-queue {}: is no queue: it holds no job, and none of a queue's files", folder.string()),
      "give the folder that was given to `dtrain train --detach --job-queue`");
}

std::vector<std::string> row_of(const job::QueuedJob& job) {
  if (!job.spec) return {std::to_string(job.number), state_name(job), "-", "-", "-", printable_word(job.problem)};
  const std::string why = job.record.why.empty() ? "" : fmt::format("  ({})", job.record.why);
  return {std::to_string(job.number),          state_name(job),
          std::to_string(job.spec->priority),  time_text(job.spec->submitted),
          std::to_string(job.record.attempts), printable_word(job::command_text(*job.spec) + why)};
}

ExitCode act(const JobsListCommand& options, const config::OptionSet& set, Reporter& reporter) {
  job::JobQueue queue = open_queue(options.queue, set);
  const std::vector<job::QueuedJob> jobs = queue.read();
  const bool has_runner = queue.has_runner();
  if (options.queue.folder && jobs.empty()) require_queue(queue.folder());
  if (reporter.json()) {
    Json list = Json::array();
    for (const job::QueuedJob& job : jobs) list.push_back(job_json(job));
    reporter.answer_json(Json::object({{"schema", "dtrain.jobs/1"},
                                       {"queue", queue.folder().string()},
                                       {"runner", has_runner},
                                       {"down_when_done", queue.goes_down()},
                                       {"forget_after_days", queue.forget_after()},
                                       {"jobs", list}}));
    return ExitCode::ok;
  }
  std::vector<std::vector<std::string>> rows{{"JOB", "STATE", "PRIORITY", "SUBMITTED", "ATTEMPTS", "COMMAND"}};
  for (const job::QueuedJob& job : jobs) rows.push_back(row_of(job));
  answer_rows(rows, reporter);
  if (!has_runner) {
    reporter.note(
        "no runner acts on this queue now; on a cluster's head it is started again within seconds, elsewhere "
        "`dtrain jobs run` is the runner");
  }
  if (const int days = queue.forget_after(); days > 0) {
    reporter.note(fmt::format("each job is removed {} days after its end", days));
  }
  if (queue.goes_down()) reporter.note("the machines of the cluster end a minute after the last job");
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_jobs_list() {
  auto command = make_command<JobsListCommand>("jobs list", "list the jobs of a queue", act);
  command->examples = {"dtrain jobs list --cluster demo", "dtrain jobs list --job-queue q --json"};
  command->see_also = {"jobs show", "jobs cancel", "train", "launch"};
  return command;
}

}  // namespace dtrain::cli
