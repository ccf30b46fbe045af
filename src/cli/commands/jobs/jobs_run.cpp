#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "cli/command.hpp"
#include "config/job_options.hpp"
#include "job/queue/queue_runner.hpp"
#include "queue_choice.hpp"

namespace dtrain::cli {
namespace {

struct JobsRunCommand {
  std::optional<Path> queue;
  bool until_empty = false;
};

void bind(config::OptionSet& set, JobsRunCommand& options) {
  set.group("Queue");
  config::bind_job_queue(set, options.queue, "folder of the queue. Jobs that other users gave to it are left alone");
  set.add("--until-empty", options.until_empty,
          "end once all jobs of the queue are over, whatever their end; without it the runner waits for more");
}

// The runner may be started before the first job is given to the queue, but a
// mistyped path must not become a folder that no job comes to.
Path folder_of_queue(const JobsRunCommand& options, Reporter& reporter) {
  const Path& given = *options.queue;
  Path folder = whole_folder(given);
  std::error_code none;
  if (is_listed(folder) || std::filesystem::exists(folder, none)) return folder;
  if (!std::filesystem::is_directory(folder.parent_path(), none)) {
    throw UsageError(fmt::format("--job-queue {}: no such folder, and {} is not there either", given.string(),
                                 folder.parent_path().string()),
                     "dtrain train --detach --job-queue FOLDER makes a queue with its first job");
  }
  reporter.note(fmt::format("{} is a new, empty queue{}", folder.string(),
                            options.until_empty ? ""
                                                : fmt::format("; the runner waits for jobs: `{}` gives it one",
                                                              job::JobQueue(given).command("train --detach"))));
  return folder;
}

ExitCode act(const JobsRunCommand& options, const config::OptionSet&, Reporter& reporter) {
  if (!options.queue) {
    throw UsageError("jobs run: --job-queue is missing",
                     "give the folder of the queue; the head of a cluster runs the cluster's queue by itself");
  }
  const job::RunnerEnd end = job::run_queue({.queue = folder_of_queue(options, reporter),
                                             .on_note = [&reporter](const std::string& line) { reporter.note(line); },
                                             .until_empty = options.until_empty});
  reporter.note(end == job::RunnerEnd::queue_is_empty
                    ? "the runner has ended: all jobs of the queue are over"
                    : "the runner has ended; a job that runs goes on, and the next runner finds it");
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_jobs_run() {
  auto command = make_command<JobsRunCommand>(
      "jobs run", "run the jobs of a queue on this machine, one after the other, and again after losses", act);
  command->examples = {"dtrain jobs run --job-queue q", "dtrain jobs run --job-queue q --until-empty"};
  command->see_also = {"jobs list", "jobs wait", "train", "launch"};
  return command;
}

}  // namespace dtrain::cli
