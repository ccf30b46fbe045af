#include <fmt/format.h>

#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>

#include "cli/command.hpp"
#include "config/launch_options.hpp"
#include "job/coordinator/job.hpp"
#include "job/coordinator/program_work.hpp"
#include "job/kubernetes/kubernetes_run.hpp"
#include "job/kubernetes/pod_command.hpp"
#include "job/queue/submission.hpp"
#include "job/spec/program_files.hpp"

namespace dtrain::cli {
namespace {

// What depends on the machine of the ranks is settled in the pods, from the user's own words: only the number of ranks
// in a pod replaces the word that stands for it.
ExitCode launch_on_kubernetes(const config::LaunchOptions& given, const config::OptionSet& of_given,
                              Reporter& reporter) {
  config::LaunchOptions options;
  config::OptionSet set;
  config::bind(set, options);
  options = config::settled_for_pods(given, of_given);
  set.take_sources(of_given);
  for (const char* name : {"nproc-per-host", "nproc-per-node"}) set.find(name)->given.reset();
  return job::run_on_kubernetes(options.job, job::pod_job_folder(options.job, set),
                                job::pod_command("launch", options.job, set, given.words), reporter,
                                config::time_to_end(options));
}

ExitCode launch_here(const config::LaunchOptions& options, const config::OptionSet& set, Reporter& reporter) {
  const job::JobStart start{options.job, set.chosen("num-workers"), false, true};
  return job::run_job(
      start,
      [&](const elastic::HostList& hosts, const job::JobFolder&, Reporter& own) {
        external::Program program = config::program_of(options);
        job::require_program(program, options.job);
        return std::make_unique<job::ProgramWork>(options, std::move(program), hosts, own);
      },
      reporter);
}

// The ranks' program learns of the folder too (DTRAIN_JOB_FOLDER, DTRAIN_RUN_DIR), and may keep its results there.
void remove_unless_used(const Path& folder, Reporter& reporter) {
  constexpr std::size_t kMostNamed = 3;
  const std::vector<std::string> kept = job::files_of_program({folder});
  std::error_code stays;
  if (kept.empty()) {
    std::filesystem::remove_all(folder, stays);
    return;
  }
  reporter.note(fmt::format("The job folder {} stays, because it holds files that dtrain did not make: {}",
                            folder.string(), join_first(kept, kMostNamed, ", ")));
}

// In a folder of this launch alone, so that its files do not fill the current folder. It stays where it holds more than
// the command has shown: why ranks failed, their output, what their program keeps there, or a job that runs on.
ExitCode launch_in_own_folder(config::LaunchOptions options, const config::OptionSet& set, Reporter& reporter) {
  const bool is_passing = !options.job.detach && !options.hides_stdout && !options.hides_stderr && !reporter.json();
  const Path folder = make_temporary_folder("dtrain-launch", "give a job folder with --job-dir");
  options.job.folder = folder;
  reporter.note(fmt::format("Job folder: {}{}", folder.string(),
                            is_passing ? ". It is removed when all ranks have succeeded, unless they left files in it; "
                                         "--job-dir keeps it"
                                       : ""));
  try {
    const ExitCode code = launch_here(options, set, reporter);
    if (code == ExitCode::ok && is_passing) remove_unless_used(folder, reporter);
    return code;
  } catch (const Error&) {
    std::error_code stays;
    if (!std::filesystem::exists(job::JobFolder{folder}.logs(), stays)) std::filesystem::remove_all(folder, stays);
    throw;
  }
}

ExitCode act(const config::LaunchOptions& given, const config::OptionSet& set, Reporter& reporter) {
  if (!given.job.kubernetes.print) watch_for_lost_reader();  // what prints alone has nothing to save
  if (given.job.is_on_kubernetes()) return launch_on_kubernetes(given, set, reporter);
  config::LaunchOptions options = given;
  job::settle_queue(options.job, set);
  options = config::settled(std::move(options), set);
  if (options.job.is_for_queue()) return job::submit_program(options, set, reporter);
  return options.job_folder_is_open ? launch_in_own_folder(std::move(options), set, reporter)
                                    : launch_here(options, set, reporter);
}

// The folder that is chosen where the user gives none has no name before the launch: see launch_in_own_folder().
void describe_own_folder(config::Option& folder) {
  folder.help += " (default a new folder in /tmp where all ranks are on this machine, else .)";
  folder.show = [&folder, show = std::move(folder.show)] {
    return folder.source == config::Source::fallback ? std::string() : show();
  };
}

}  // namespace

std::unique_ptr<Command> make_launch() {
  auto command = make_command<config::LaunchOptions>(
      "launch", "run any training program as the ranks of a job; hosts can join and leave", act);
  command->first_options = {"num-workers", "hostfile", "nproc-per-host", "elastic", "job-dir", "env", "max-restarts"};
  describe_own_folder(*command->options.find("job-dir"));
  command->examples = {
      "dtrain launch -n 4 -- python3 train.py --epochs 10",
      "dtrain launch -H hosts --nproc-per-host 8 --elastic --job-dir /efs/job -- python3 train.py",
      "dtrain launch -n 2 -s 2 -- python3 train_mnist.py --kv-store dist_sync",
      "dtrain launch -n 2 -s 1 --template -- python3 train.py --job_name={role} --task_index={task_index} "
      "--ps_hosts={ps_hosts} --worker_hosts={worker_hosts}"};
  command->see_also = {"hosts list", "events", "tail-logs", "stop", "run", "train"};
  return command;
}

}  // namespace dtrain::cli
