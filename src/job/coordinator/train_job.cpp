#include "train_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "config/gpu/gpu_choice.hpp"
#include "job.hpp"
#include "job/report/run_records.hpp"
#include "job/spec/job_client.hpp"
#include "job/spec/queued_attempt.hpp"
#include "job/spec/settle_run.hpp"
#include "train_work.hpp"

namespace dtrain::job {
namespace {

void refuse_what_one_process_does(const config::TrainOptions& options) {
  constexpr const char* kHint = "leave -n, -H and --elastic out, and name at most one GPU with --gpus";
  if (options.test_io) throw UsageError("--test-io: reading is measured in one process", kHint);
  if (options.dry_run) throw UsageError("--dry-run: looks at one process on this machine", kHint);
}

// The number of workers that share a machine: all of them if they run here, otherwise those of one host.
int workers_of_a_machine(const elastic::HostList& list, const config::JobOptions& job) {
  if (!job.is_on_other_machines()) return workers_of(list);
  int most = 1;
  for (const elastic::HostLine& host : list.hosts) most = std::max(most, host.slots);
  return most;
}

// Workers on one machine share its processors: more threads than that would only wait for each other. A worker alone on
// its machine uses all of its processors.
void share_processors(int workers, const config::OptionSet& set, config::TrainOptions& options) {
  if (workers == 1) return;
  const int share = std::max(1, usable_cpus() / workers);
  if (!set.chosen("threads")) options.compute.threads = share;
  if (!set.chosen("data-nthreads")) options.data.threads = std::min(options.data.threads, share);
}

std::unique_ptr<JobWork> make_work(const config::TrainOptions& given, const config::OptionSet& set,
                                   const elastic::HostList& hosts, const JobFolder& folder, Reporter& reporter) {
  config::TrainOptions options = given;
  config::check_slots(options.compute, hosts);
  options.compute.hosts = static_cast<int>(hosts.hosts.size());
  share_processors(workers_of_a_machine(hosts, options.job), set, options);
  TrainRun run = settle_run(options, set, workers_of(hosts), reporter);
  if (!options.resume) refuse_living_job(folder);
  // Held until the files are written, and taken again by the job: the folder of another job, or one that takes no
  // files, is refused before anything in it changes.
  make_folder(folder.path);
  const FileLock lock = coordinate(folder);
  if (!options.resume) set_other_records_aside(folder, options, reporter);
  keep_configuration(folder, set, run.options, reporter);
  return std::make_unique<TrainWork>(std::move(run), folder, reporter);
}

}  // namespace

void drop_hosts_of_node(const config::OptionSet& set, config::TrainOptions& options, Reporter& reporter) {
  if (!options.test_io && !options.dry_run) return;
  std::vector<std::string> dropped;
  const auto drops = [&](const char* name) {
    const config::Option& option = *set.find(name);
    const bool is_of_node = option.source == config::Source::environment && option.origin == option.legacy_variable;
    if (is_of_node) dropped.push_back(option.origin);
    return is_of_node;
  };
  if (options.job.hosts > 1 && drops("num-workers")) options.job.hosts = 1;
  if (options.job.hostfile && drops("hostfile")) options.job.hostfile.reset();
  if (config::workers_of_host(options.compute) > 1 && drops("gpus")) options.compute.gpus = config::first_gpus(1);
  if (dropped.empty() || options.job.is_job()) return;
  reporter.note(fmt::format("{} looks at one process here, for which {} {} no effect",
                            options.dry_run ? "--dry-run" : "--test-io", join(dropped, ", "),
                            dropped.size() == 1 ? "has" : "have"));
}

ExitCode train_in_job(const config::TrainOptions& options, const config::OptionSet& set, Reporter& reporter) {
  refuse_what_one_process_does(options);
  const JobStart start{options.job, set.chosen("num-workers"), options.resume, options.resume};
  const auto make = [&](const elastic::HostList& hosts, const JobFolder& folder, Reporter& own) {
    return make_work(options, set, hosts, folder, own);
  };
  return with_passing_refusals(options.job.managed, [&] { return run_job(start, make, reporter); });
}

}  // namespace dtrain::job
