#include "job.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>

#include "cpus.hpp"
#include "detach.hpp"
#include "host_list.hpp"
#include "job_client.hpp"
#include "job_run.hpp"

namespace dtrain::cli {
namespace {

void refuse_what_one_process_does(const TrainOptions& options) {
  if (!options.test_io) return;
  throw UsageError("--test-io: reading is measured in one process", "leave -n, -H and --elastic out");
}

int workers_of(const elastic::HostList& list) {
  int workers = 0;
  for (const elastic::HostLine& host : list.hosts) workers += host.slots;
  return workers;
}

// Of all workers if they run here, else of one host.
int workers_of_a_machine(const elastic::HostList& list, const JobOptions& job) {
  if (!job.is_over_ssh()) return workers_of(list);
  int most = 1;
  for (const elastic::HostLine& host : list.hosts) most = std::max(most, host.slots);
  return most;
}

// Workers share their machine's processors: more threads than those would only wait for each other. One worker uses all
// of its own machine's, however many that are.
void share_processors(int workers, const OptionSet& set, TrainOptions& options) {
  if (workers == 1) return;
  const int share = std::max(1, usable_cpus() / workers);
  if (!set.chosen("threads")) options.compute.threads = share;
  if (!set.chosen("data-nthreads")) options.data.threads = std::min(options.data.threads, share);
}

// Its coordinator may be on another machine, where a lock does not reach.
void refuse_living_job(const JobFolder& folder) {
  if (!is_alive(folder)) return;
  throw Error(fmt::format("{}: a job runs there already", folder.path.string()),
              fmt::format("use another --job-dir, or end it with `dtrain stop --job-dir {}`", folder.path.string()));
}

ExitCode coordinate_here(const TrainOptions& given, const OptionSet& set, Console& console,
                         const std::function<void()>& tell_running) {
  watch_stop_signals();
  const JobFolder folder{given.job.folder};
  const StartingHosts hosts = choose_hosts(given.job, set.chosen("num-workers"), given.resume);
  const int workers = workers_of(hosts.list);
  TrainOptions options = given;
  options.compute.hosts = static_cast<int>(hosts.list.hosts.size());
  share_processors(workers_of_a_machine(hosts.list, options.job), set, options);
  const TrainRun run = settle_run(options, set, workers, console);

  make_folder(folder.path);
  const FileLock lock = coordinate(folder);
  refuse_living_job(folder);
  create_job_files(folder, hosts, given.resume, console);
  JobRun job(run, workers, folder, console);
  return job.until_over(tell_running);
}

ExitCode answer_detached(const Detached::Outcome& outcome, const JobFolder& folder, Console& console) {
  for (const std::string& line : split(outcome.said, '\n')) {
    if (!line.empty()) console.log(line);
  }
  if (!outcome.runs) return static_cast<ExitCode>(outcome.exit_code);
  const std::string where = folder.path.string();
  if (console.json()) {
    console.answer_json(Json::object({{"schema", "dtrain.detached/1"}, {"pid", outcome.pid}, {"job_dir", where}}));
    return ExitCode::ok;
  }
  console.answer(fmt::format("the job runs: process {}, folder {}", outcome.pid, where));
  console.answer(fmt::format("  dtrain hosts list --job-dir {}", where));
  console.answer(fmt::format("  tail -f {}", (folder.logs() / "coordinator.log").string()));
  console.answer(fmt::format("  dtrain stop --job-dir {}", where));
  return ExitCode::ok;
}

}  // namespace

ExitCode run_job(const TrainOptions& options, const OptionSet& set, Console& console) {
  refuse_what_one_process_does(options);
  if (!options.job.detach) return coordinate_here(options, set, console, [] {});
  const JobFolder folder{options.job.folder};
  const Detached detached = detach(folder);
  if (detached.outcome) return answer_detached(*detached.outcome, folder, console);
  Console own_console(console.options());
  return coordinate_here(options, set, own_console, detached.tell_running);
}

ExitCode take_over(const elastic::CoordinatorOrder& order, Console& console) {
  ::unsetenv(elastic::kCoordinatorVariable);
  watch_stop_signals();
  const TrainRun run = run_from_json(order.document);
  const JobFolder folder{order.job_folder};
  // A lost coordinator that is not dead still holds it.
  const std::optional<FileLock> lock = FileLock::take(folder.lock());
  JobRun job(run, folder, order, console);
  return job.until_over([] {});
}

}  // namespace dtrain::cli
