#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>

#include "cli/command.hpp"
#include "cli/commands/jobs/queue_choice.hpp"
#include "config/job_options.hpp"
#include "job/queue/job_queue.hpp"
#include "job/spec/job_client.hpp"
#include "job/spec/wait_for_stop.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
// The end of a process, or the time from its lock to its record.
constexpr auto kBeginPatience = 10s;
constexpr auto kBetweenLooks = 50ms;

// The job of a queue, before the stop; nullopt: no queue starts it again.
using QueuedStop = std::optional<job::OpenJob>;

struct StopCommand {
  job::JobFolder job{"."};
  bool now = false;
};

void bind(config::OptionSet& set, StopCommand& options) {
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
  set.add("--now", options.now, "kill all processes at once, without a checkpoint").flag_only = true;
}

job::CoordinatorFile record_of(const job::JobFolder& job) {
  return job::read_coordinator(job).value_or(job::CoordinatorFile{});
}

// The record may be that of a job that ended earlier, while the next one is about to begin.
job::CoordinatorFile settled_record(const job::JobFolder& job) {
  const auto end = std::chrono::steady_clock::now() + kBeginPatience;
  for (;;) {
    job::CoordinatorFile record = record_of(job);
    if (!record.over() || !job::is_coordinated(job)) return record;
    if (stop_signal() != 0) throw Interrupted(stop_signal(), "stopped before the job was asked to end");
    if (std::chrono::steady_clock::now() > end) {
      throw Error(fmt::format("{}: a job that has not begun yet, or a training in one process, holds {}",
                              job.path.string(), job.lock().filename().string()),
                  "try again in a moment; Ctrl-C stops a training in one process");
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

// Whether the running attempt of a queue's job ended because of this request: the queue then does not start it again.
// Throws as job::wait_until_over().
bool stop_attempt(const StopCommand& options) {
  if (record_of(options.job).over()) return false;
  try {
    job::ask_to_stop(options.job, job::kStoppedByCommand, options.now);
  } catch (const Error&) {  // it ended just now, or was killed
    return false;
  }
  job::wait_until_over(options.job);
  return record_of(options.job).ended.find(job::kStoppedByCommand) != std::string::npos;
}

// Returns false if the job had ended before. Throws as job::ask_to_stop() and job::wait_until_over().
bool stop_running_job(const StopCommand& options) {
  if (settled_record(options.job).over()) return false;
  try {
    job::ask_to_stop(options.job, job::kStoppedByCommand, options.now);
  } catch (const Error&) {
    if (record_of(options.job).over()) return false;  // it ended just now
    throw;
  }
  job::wait_until_over(options.job);
  return true;
}

// The manifest of the newest checkpoint; empty: none was saved.
std::string newest_checkpoint(const job::JobFolder& job) {
  return file_exists(job.latest()) ? std::string(trim(read_file(job.latest()))) : "";
}

std::string how_it_stopped(const job::CoordinatorFile& record, const std::string& checkpoint) {
  if (record.exit_code != ExitCode::resumable) return "the job has ended: " + record.ended;
  if (record.runs_program) return "the job has stopped: " + record.ended;
  return fmt::format("the job has stopped; the same command with --resume continues{}",
                     checkpoint.empty() ? "" : " from " + checkpoint);
}

std::string place_of_reason(const job::JobFolder& job, const job::CoordinatorFile& record, const QueuedStop& queued) {
  if (queued) {
    return fmt::format("`{}` says why", queued->queue.command(fmt::format("jobs logs {}", queued->number)));
  }
  if (record.has_log) return job.coordinator_log().string() + " says why";
  return "the terminal of the job's command says why";
}

void answer_json(const StopCommand& options, const std::string& ended, std::optional<int> exit_code,
                 const std::string& checkpoint, Reporter& reporter) {
  reporter.answer_json(Json::object({{"schema", "dtrain.stop/1"},
                                     {"job_dir", options.job.path.string()},
                                     {"ended", ended},
                                     {"exit_code", exit_code ? Json(*exit_code) : Json()},
                                     {"checkpoint", checkpoint.empty() ? Json() : Json(checkpoint)}}));
}

std::string lost_words(const std::string& checkpoint) {
  return checkpoint.empty() ? "all that it trained is lost" : "what it trained after " + checkpoint + " is lost";
}

// What `jobs cancel` does, for a job that its queue would start again.
ExitCode cancel_in_queue(const StopCommand& options, QueuedStop& stop, Reporter& reporter) {
  job::OpenJob& queued = *stop;
  const bool was_running = queued.queue.at(queued.number).record.state == job::JobState::running;
  try {
    queued.queue.cancel(queued.number, options.now);
  } catch (const UsageError&) {  // it is over by now
  }
  const bool has_runner = queued.queue.has_runner();
  const job::QueuedJob job = has_runner ? wait_for_job(queued.queue, queued.number) : queued.queue.at(queued.number);
  const bool is_over = job.spec && job.record.is_over();
  const std::string& why = job.record.why;
  const std::string ended = is_over ? state_name(job) + (why.empty() ? "" : " " + why) : "";
  if (reporter.json()) {
    answer_json(options, ended, is_over ? std::optional(job.record.exit_code) : std::nullopt,
                newest_checkpoint(options.job), reporter);
  } else {
    reporter.answer(fmt::format("job {} of the queue {}{}", queued.number, queued.queue.folder().string(),
                                is_over ? ": " + ended : " will be cancelled by the next runner of the queue"));
  }
  if (was_running && is_over && why == job::kUnsaved && !options.now) {
    throw Error(fmt::format("{}: the attempt ended without a checkpoint: {}", options.job.path.string(),
                            lost_words(newest_checkpoint(options.job))),
                place_of_reason(options.job, record_of(options.job), stop));
  }
  return ExitCode::ok;
}

// The user asked for a stop that saves.
void refuse_lost_work(const StopCommand& options, const job::CoordinatorFile& record, const std::string& checkpoint,
                      const QueuedStop& queued) {
  if (!record.over()) {
    throw Error(fmt::format("{}: the coordinator ended without recording the job's end", options.job.path.string()),
                job::how_to_go_on(record));
  }
  const bool is_kept = record.exit_code == ExitCode::ok || record.exit_code == ExitCode::resumable;
  if (is_kept || options.now) return;
  const std::string lost = record.runs_program ? "" : ": " + lost_words(checkpoint);
  throw Error(fmt::format("{}: the job ended with exit code {}{}", options.job.path.string(),
                          static_cast<int>(record.exit_code), lost),
              place_of_reason(options.job, record, queued));
}

ExitCode act(const StopCommand& options, const config::OptionSet&, Reporter& reporter) {
  watch_stop_signals();
  QueuedStop queued = job::open_job_of(options.job);
  if (queued && !stop_attempt(options)) return cancel_in_queue(options, queued, reporter);
  const bool ended_now = queued || stop_running_job(options);
  const job::CoordinatorFile record = record_of(options.job);
  const std::string checkpoint = newest_checkpoint(options.job);
  if (reporter.json()) {
    answer_json(options, record.ended, record.over() ? std::optional(static_cast<int>(record.exit_code)) : std::nullopt,
                checkpoint, reporter);
  }
  if (ended_now) refuse_lost_work(options, record, checkpoint, queued);
  if (!reporter.json()) {
    reporter.answer(ended_now ? how_it_stopped(record, checkpoint) : "the job has already ended: " + record.ended);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_stop() {
  auto command = make_command<StopCommand>(
      "stop", "stop a job on all hosts; the job saves a checkpoint and exits with code 75", act);
  command->examples = {"dtrain stop --job-dir job", "dtrain stop --job-dir job --now"};
  command->see_also = {"hosts list", "events", "train"};
  return command;
}

}  // namespace dtrain::cli
