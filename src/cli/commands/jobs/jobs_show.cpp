#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "cli/command.hpp"
#include "cli/printable.hpp"
#include "queue_choice.hpp"

namespace dtrain::cli {
namespace {

struct JobsShowCommand {
  QueueChoice queue;
  int job = 0;
};

void bind(config::OptionSet& set, JobsShowCommand& options) {
  bind_job_number(set, options.job);
  bind_queue(set, options.queue);
}

ExitCode act(const JobsShowCommand& options, const config::OptionSet& set, Reporter& reporter) {
  job::JobQueue queue = open_queue(options.queue, set);
  const job::QueuedJob job = queue.at(options.job);
  if (reporter.json()) {
    reporter.answer_json(job_document(job));
    return ExitCode::ok;
  }
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty() && value != "-") reporter.answer(fmt::format("{:<10}{}", name, printable_word(value)));
  };
  line("job", std::to_string(job.number));
  line("state", state_name(job) + (job.cancelled && !job.record.is_over() ? ", is being cancelled" : ""));
  line("why", job.spec ? job.record.why : job.problem);
  line("folder", job.folder.string());
  if (!job.spec) return ExitCode::ok;
  line("command", "dtrain " + job::command_text(*job.spec));
  line("runs in", job.spec->folder.string());
  line("job dir", job.job_folder().path.string());
  line("output", job.output().string());
  line("priority", std::to_string(job.spec->priority));
  line("submitted", time_text(job.spec->submitted));
  line("attempts", std::to_string(job.record.attempts));
  line("begun", time_text(job.record.begun));
  line("next try", job.record.state == job::JobState::waiting ? time_text(job.record.not_before) : "");
  line("ended", time_text(job.record.ended));
  line("exit code", job.record.is_over() && job.record.attempts > 0 ? std::to_string(job.record.exit_code) : "");
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_jobs_show() {
  auto command = make_command<JobsShowCommand>("jobs show", "show one job of a queue, and why it waits or ended", act);
  command->examples = {"dtrain jobs show 7 --cluster demo", "dtrain jobs show 7 --json"};
  command->see_also = {"jobs list", "jobs logs"};
  return command;
}

}  // namespace dtrain::cli
