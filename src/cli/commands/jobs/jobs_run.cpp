#include <dtrain/base/error.hpp>

#include "cli/command.hpp"
#include "config/job_options.hpp"
#include "job/queue/queue_runner.hpp"

namespace dtrain::cli {
namespace {

struct JobsRunCommand {
  std::optional<Path> queue;
};

void bind(config::OptionSet& set, JobsRunCommand& options) {
  set.group("Queue");
  config::bind_job_queue(set, options.queue, "folder of the queue");
}

ExitCode act(const JobsRunCommand& options, const config::OptionSet&, Reporter& reporter) {
  if (!options.queue) {
    throw UsageError("jobs run: --job-queue is missing",
                     "give the folder of the queue; the head of a cluster runs the cluster's queue by itself");
  }
  job::run_queue({.queue = std::filesystem::absolute(*options.queue),
                  .on_note = [&reporter](const std::string& line) { reporter.note(line); }});
  reporter.note("the runner has ended; a job that runs goes on, and the next runner finds it");
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_jobs_run() {
  auto command = make_command<JobsRunCommand>(
      "jobs run", "run the jobs of a queue on this machine, one after the other, and again after losses", act);
  command->examples = {"dtrain jobs run --job-queue q"};
  command->see_also = {"jobs list", "train", "launch"};
  return command;
}

}  // namespace dtrain::cli
