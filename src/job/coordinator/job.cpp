#include "job.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <memory>

#include <dtrain/base/error.hpp>
#include <dtrain/base/open_files.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>

#include "detach.hpp"
#include "job/logs/job_watch.hpp"
#include "job/logs/log_source.hpp"
#include "job/spec/host_list.hpp"
#include "job/spec/job_client.hpp"
#include "job/spec/prefix_claim.hpp"
#include "job/spec/waiting_hosts.hpp"
#include "job_end.hpp"
#include "job_run.hpp"
#include "machine_limits.hpp"
#include "program_work.hpp"
#include "resubmit.hpp"
#include "train_work.hpp"

namespace dtrain::job {
namespace {

// Steps of a start that a process in the background tells of.
struct StartSteps {
  std::function<void()> coordinates, runs;
};

ExitCode coordinate_here(const JobStart& start, const MakeWork& make_work, Reporter& reporter, const StartSteps& tell) {
  watch_stop_signals();
  const JobFolder folder{start.job.folder};
  const StartingHosts hosts = start.job.is_by_folder() ? await_hosts(start.job, start.resume, reporter)
                                                       : choose_hosts(start.job, start.chose_number, start.resume);
  prepare_machine({.hosts = static_cast<int>(hosts.list.hosts.size()),
                   .ranks = workers_of(hosts.list),
                   .is_here = !start.job.is_on_other_machines()});
  // Before the work takes the prefix of its checkpoints: that a job runs there is what the user must hear first.
  if (is_coordinated(folder)) coordinate(folder);
  await_saving_agents(folder, reporter);
  const std::unique_ptr<JobWork> work = make_work(hosts.list, folder, reporter);

  make_folder(folder.path);
  const FileLock lock = coordinate(folder);
  refuse_living_job(folder);
  tell.coordinates();
  create_job_files(folder, hosts, start.resume, reporter);
  JobRun job(*work, workers_of(hosts.list), folder, reporter);
  return job.until_over(tell.runs);
}

// The background process has ended, and its log does not say why.
class EndedSilently final : public Error {
 public:
  EndedSilently(const JobFolder& folder, int code)
      : Error(fmt::format("{}: the job did not start (exit code {}), and {} does not say why", folder.path.string(),
                          code, folder.coordinator_log().string()),
              "make room on the disk of that log, or give another --job-dir; without --detach the command says why"),
        code_(static_cast<ExitCode>(code)) {}
  ExitCode exit_code() const override { return code_; }

 private:
  ExitCode code_;
};

// What a line of a process with --json is.
enum class Said { words, error, record };

Said kind_of(std::string_view line) try {
  const Json document = Json::parse(line, "");
  const Json* const error = document.find("error");
  if (error && error->is_object()) return Said::error;
  return document.find("schema") ? Said::record : Said::words;
} catch (const Error&) {
  return Said::words;
}

// Shows what the background process said until now, which has obeyed --quiet itself. With --json its error goes to the
// end, where the user's program looks for it, and its records are the answer where the job is over: the answer for a
// job that runs is another one. Returns false if an error is missing.
bool pass_on_what_it_said(const Detached::Outcome& outcome, Reporter& reporter) {
  std::string error;
  bool said_something = false;
  for (const std::string& whole : split(outcome.said, '\n')) {
    const std::string_view line = without_time(whole);
    if (line.empty()) continue;
    said_something = true;
    const Said kind = reporter.json() ? kind_of(line) : Said::words;
    if (kind == Said::error && !outcome.runs) {
      error = line;
    } else if (kind != Said::record) {
      reporter.pass_on(line);
    } else if (!outcome.runs) {
      reporter.answer(line);
    }
  }
  if (!error.empty()) reporter.pass_on(error);
  return reporter.json() ? !error.empty() : said_something;
}

ExitCode answer_detached(const Detached::Outcome& outcome, const JobFolder& folder, Reporter& reporter) {
  const bool told = pass_on_what_it_said(outcome, reporter);
  if (!outcome.runs && outcome.exit_code != 0 && !told) throw EndedSilently(folder, outcome.exit_code);
  if (!outcome.runs) return static_cast<ExitCode>(outcome.exit_code);
  const std::string where = folder.path.string();
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.detached/1"}, {"pid", outcome.pid}, {"job_dir", where}}));
    return ExitCode::ok;
  }
  reporter.answer(fmt::format("the job runs: process {}, folder {}", outcome.pid, where));
  for (const char* next : {"hosts list", "tail-logs", "stop"}) reporter.answer("  " + folder.command(next));
  return ExitCode::ok;
}

std::string log_follows(const JobFolder& folder) {
  return fmt::format("its log follows; `{}` shows the output of the workers as well", folder.command("tail-logs"));
}

// A process that was started again where an agent's machine has the coordinator meanwhile.
ExitCode follow(const JobFolder& folder, Reporter& reporter) {
  reporter.note(fmt::format("{}: the job runs; {}", folder.path.string(), log_follows(folder)));
  watch_stop_signals(2);
  return JobWatch(folder, reporter).until_over();
}

// `document`: result of JobWork::document() in another process of this job.
std::unique_ptr<JobWork> work_from_document(const Json& document, const JobFolder& folder, Reporter& reporter) {
  const config::RunSpec spec = config::run_spec_from_json(document);
  enter_folder(spec);
  if (const auto* program = std::get_if<config::ProgramSpec>(&spec.work)) {
    return std::make_unique<ProgramWork>(*program, folder, reporter);
  }
  TrainRun run = run_of(std::get<config::TrainSpec>(spec.work));
  run.prefix_lock = lock_prefix_again(run.options);
  return std::make_unique<TrainWork>(std::move(run), folder, reporter);
}

}  // namespace

ExitCode run_job(const JobStart& start, const MakeWork& make_work, Reporter& reporter) {
  if (needs_scheduler(start.job)) return run_under_scheduler(start.job, start.chose_number, reporter);
  const JobFolder folder{start.job.folder};
  if (start.follows && start.job.is_by_folder() && has_living_job(folder)) return follow(folder, reporter);
  if (!start.job.detach) {
    JobWatch watch(folder, reporter);
    try {
      return coordinate_here(start, make_work, reporter, {[] {}, [] {}});
    } catch (const Replaced& replaced) {
      reporter.note(fmt::format("{}; {}", replaced.what(), log_follows(folder)));
    }
    return watch.until_over();
  }
  const Detached detached = detach(folder);
  if (detached.outcome) return answer_detached(*detached.outcome, folder, reporter);
  const std::unique_ptr<Reporter> own = reporter.reopened();
  // The process that waits shows what this one has said.
  const auto tell = [&own](const std::function<void()>& step) {
    return [&own, &step] {
      own->flush();
      step();
    };
  };
  return coordinate_here(start, make_work, *own, {tell(detached.take_log), tell(detached.tell_running)});
}

ExitCode take_over(const elastic::CoordinatorOrder& order, Reporter& reporter) {
  ::unsetenv(elastic::kCoordinatorVariable);
  watch_stop_signals();
  raise_open_files();  // a connection to each agent
  const JobFolder folder{order.job_folder};
  const std::unique_ptr<Reporter> own = reporter.reopened();
  const std::unique_ptr<JobWork> work = work_from_document(order.document, folder, *own);
  // A coordinator that is cut off but alive still holds the lock.
  const std::optional<FileLock> lock = FileLock::take_now(folder.lock());
  // A file server that hung may have held up this process. Its late address must not replace that of its successor.
  refuse_if_replaced(folder, order.election.term);
  JobRun job(
      *work, folder, order, [&reporter](std::uint16_t port) { reporter.answer(std::to_string(port)); }, *own);
  return job.until_over([] {});
}

}  // namespace dtrain::job
