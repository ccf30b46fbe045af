#include "submission.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/launcher/starter_launcher.hpp>
#include <dtrain/train/weights.hpp>

#include "attempt.hpp"
#include "config/train_sources.hpp"
#include "job/spec/host_list.hpp"
#include "job/spec/prefix_claim.hpp"
#include "job/spec/train_run.hpp"
#include "job/spec/train_start.hpp"

namespace dtrain::job {
namespace {

// This process's command line. What the user wanted of the answer here does not concern the job.
std::vector<std::string> words_of_job(std::size_t program_words) {
  std::vector<std::string> words = own_arguments();
  const auto end = words.end() - static_cast<std::ptrdiff_t>(std::min(program_words, words.size()));
  words.erase(std::remove(words.begin(), end, "--json"), end);
  return words;
}

ManagedSpec spec_for(const config::JobOptions& options, const config::OptionSet& set) {
  ManagedSpec spec{.environment = kept_environment(own_environment()),
                   .folder = std::filesystem::current_path(),
                   .cluster = chosen_cluster(set),
                   .priority = options.priority,
                   .hosts = set.chosen("num-workers") ? options.hosts : 0,
                   .retries = options.retries};
  const config::Option* folder = set.find("job-dir");
  if (set.chosen("job-dir") && folder->origin != folder->legacy_variable)
    spec.job_folder = std::filesystem::absolute(options.folder);
  spec.submitted =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  return spec;
}

void check_down(const config::JobOptions& options, const ManagedSpec& spec) {
  if (!options.down_when_done) return;
  if (spec.cluster.empty()) {
    throw UsageError("--down-when-done: this queue is of no cluster whose machines could end",
                     "add --cluster NAME, or leave --down-when-done out");
  }
  const auto registry = cluster::registry_of(spec.cluster);
  if (!registry || !registry->adopted) return;
  throw UsageError(
      fmt::format("--down-when-done: the machines of cluster {} are those of the stack that it adopted, "
                  "and not dtrain's to end",
                  spec.cluster),
      fmt::format("leave --down-when-done out; `dtrain cluster down {}` gives the machines back later", spec.cluster));
}

ExitCode submit(const config::JobOptions& options, const ManagedSpec& spec, Reporter& reporter) {
  JobQueue queue(std::filesystem::absolute(*options.job_queue), spec.cluster);
  const int number = queue.submit(spec, options.down_when_done);
  const QueuedJob job = queue.at(number);
  if (!queue.has_runner()) {
    reporter.warn(spec.cluster.empty()
                      ? fmt::format("no runner serves this queue; start one: `{}`", queue.command("jobs run"))
                      : "the job waits for the runner of the queue, which the head starts again within seconds");
  }
  if (const std::string owner = owner_of(queue.folder()), own = owner_of(job.folder); owner != own) {
    reporter.warn(
        fmt::format("the queue {} belongs to {}, whose runner runs no job of {}; `dtrain jobs run` as {} does",
                    queue.folder().string(), owner, own, own));
  }
  if (options.down_when_done) {
    reporter.note(
        fmt::format("All machines of cluster {} end a minute after the last job; `dtrain cluster down {}` then "
                    "removes what costs nothing",
                    spec.cluster, spec.cluster));
  }
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.submitted/1"},
                                       {"job", number},
                                       {"queue", queue.folder().string()},
                                       {"job_dir", job.job_folder().path.string()}}));
    return ExitCode::ok;
  }
  reporter.answer(fmt::format("job {} is in the queue; its folder is {}", number, job.job_folder().path.string()));
  for (const std::string& next :
       {std::string("jobs list"), fmt::format("jobs logs {} -f", number), fmt::format("jobs cancel {}", number)})
    reporter.answer("  " + queue.command(next));
  return ExitCode::ok;
}

// The same for all texts that lead to one folder here.
Path whole_prefix(const Path& prefix) {
  if (data::is_remote(prefix)) return prefix;
  const Path absolute = std::filesystem::absolute(prefix);
  std::error_code unreadable;  // which the claim of the prefix reports
  const Path real = std::filesystem::weakly_canonical(absolute, unreadable);
  return unreadable ? absolute.lexically_normal() : real;
}

bool any_open(const Path& folder) {
  const std::vector<QueuedJob> jobs = JobQueue(folder).read();
  return std::ranges::any_of(jobs, [](const QueuedJob& job) { return job.spec && !job.record.is_over(); });
}

void refuse_what_resumes_badly(const config::TrainOptions& options) {
  if (options.test_io || options.dry_run) {
    throw UsageError("--test-io and --dry-run: look at one process here, so there is nothing for a queue to run",
                     "leave --detach out");
  }
  refuse_other_starts(options, "a queue");
}

// The weights may be those of a job that is before this one.
void require_weights(const config::TrainOptions& options) {
  const auto& file = options.pretrained.file;
  if (!file || data::is_remote(*file) || any_open(*options.job.job_queue)) return;
  if (file_exists(train::file_of_weights(*file))) return;
  throw DataError(
      fmt::format("{}: neither a file nor a checkpoint's prefix, and no other job in the queue could make it",
                  file->string()),
      "name a file of weights, or a prefix of checkpoints, on this machine");
}

// With --cluster, the queue is chosen for the user.
void refuse_without_queue(const config::OptionSet& set) {
  for (const char* name : {"priority", "retries", "down-when-done", "job-queue"}) {
    const bool is_chosen_for_user = name == std::string_view("job-queue") && !chosen_cluster(set).empty();
    if (set.find(name)->source != config::Source::flag || is_chosen_for_user) continue;
    throw UsageError(fmt::format("--{}: is for jobs that are given to a queue", name),
                     "add --detach and --cluster NAME, or --detach and --job-queue FOLDER");
  }
}

void require_program(const std::vector<std::string>& words) {
  constexpr const char* kHint = "install it on the machine that runs the queue, or give its whole path";
  if (words.empty()) {
    throw UsageError("launch: COMMAND is missing", "for example: dtrain launch -n 4 -- python3 train.py");
  }
  const std::string& program = words.front();
  if (program.find('/') == program.npos) {
    launcher::find_program(program, environment("PATH").value_or(""), kHint);
  } else if (!file_exists(program)) {
    throw UsageError(fmt::format("launch: there is no program {}", program), kHint);
  }
}

}  // namespace

std::string chosen_cluster(const config::OptionSet& set) {
  const config::Option* option = set.find("cluster");
  return option ? option->given.value_or("") : "";
}

void settle_queue(config::JobOptions& options, const config::OptionSet& set) {
  if (environment(kManagedVariable)) {
    options.managed = true;
    options.detach = false;
    for (const char* name : {kManagedVariable, kAttemptJobDir, kAttemptResume, kAttemptResetHosts}) ::unsetenv(name);
    return;
  }
  if (!options.is_for_queue()) return refuse_without_queue(set);
  if (!options.is_by_starter()) return;
  throw UsageError(fmt::format("--launcher {}: its scheduler has a queue of its own",
                               enum_name(config::kLauncherNames, options.launcher)),
                   "leave --job-queue out, and submit the command as a batch script");
}

ExitCode submit_training(const config::TrainOptions& options, const config::OptionSet& set, Reporter& reporter) {
  ManagedSpec spec = spec_for(options.job, set);
  check_down(options.job, spec);
  refuse_what_resumes_badly(options);
  require_lasting_host_file(options.job);
  require_weights(options);
  if (!options.benchmark) config::choose_sources(options, set, reporter);
  if (options.model_prefix) spec.prefix = whole_prefix(*options.model_prefix);
  spec.continues = options.resume;
  // A job of this queue may be saving there now: this one claims the prefix when it runs, which is after or before it.
  if (!JobQueue(std::filesystem::absolute(*options.job.job_queue)).shares_prefix(spec))
    claim_prefix(options, remote_of_run(reporter).store, reporter);
  if (!options.model_prefix) {
    reporter.warn("without --model-prefix the job begins from the start after each loss");
  }
  spec.words = words_of_job(0);
  spec.resumes = true;
  return submit(options.job, spec, reporter);
}

ExitCode submit_program(const config::LaunchOptions& options, const config::OptionSet& set, Reporter& reporter) {
  ManagedSpec spec = spec_for(options.job, set);
  check_down(options.job, spec);
  require_lasting_host_file(options.job);
  require_program(options.words);
  if (!options.job_folder_is_open && spec.job_folder.empty() && options.torchrun.log_dir)
    spec.job_folder = std::filesystem::absolute(options.job.folder);
  spec.words = words_of_job(options.words.size());
  return submit(options.job, spec, reporter);
}

}  // namespace dtrain::job
