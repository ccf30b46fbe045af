#include <dtrain/base/stop.hpp>

#include "cli/command.hpp"
#include "config/job_options.hpp"
#include "job/spec/job_client.hpp"
#include "job/spec/wait_for_stop.hpp"

namespace dtrain::cli {
namespace {

struct StopCommand {
  job::JobFolder job{"."};
  bool now = false;
};

void bind(config::OptionSet& set, StopCommand& options) {
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
  set.add("--now", options.now, "kill all processes at once, without a checkpoint").flag_only = true;
}

ExitCode act(const StopCommand& options, const config::OptionSet&, Reporter& reporter) {
  watch_stop_signals();
  job::ask_to_stop(options.job, job::kStoppedByCommand, options.now);
  job::wait_until_over(options.job);
  const std::string ended = job::read_coordinator(options.job).value_or(job::CoordinatorFile{}).ended;
  if (reporter.json()) {
    reporter.answer_json(
        Json::object({{"schema", "dtrain.stop/1"}, {"job_dir", options.job.path.string()}, {"ended", ended}}));
  } else {
    reporter.answer(ended.empty() ? "the job has already ended" : ended);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_stop() {
  auto command =
      make_command<StopCommand>("stop", "stop a job on all hosts; it saves a checkpoint and exits with code 75", act);
  command->examples = {"dtrain stop --job-dir job", "dtrain stop --job-dir job --now"};
  command->see_also = {"hosts list", "events", "train"};
  return command;
}

}  // namespace dtrain::cli
