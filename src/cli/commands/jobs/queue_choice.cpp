#include "queue_choice.hpp"

#include <fmt/format.h>

#include <thread>

#include <dtrain/base/clock.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/launcher/agent_registry.hpp>

#include "config/job_options.hpp"
#include "job/queue/submission.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kLookAtJob = 300ms;

}  // namespace

void bind_queue(config::OptionSet& set, QueueChoice& choice) {
  set.group("Queue");
  config::bind_job_queue(set, choice.folder,
                         "folder of the queue (default that of the cluster that this machine is in)");
  config::bind_cluster_choice(set);
}

void bind_job_number(config::OptionSet& set, int& number) {
  set.add("JOB", number, "JOB", "number of the job, as shown by `dtrain jobs list`", config::at_least(1)).required =
      true;
}

Path whole_folder(const Path& given) {
  const Path folder = std::filesystem::absolute(given).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

job::JobQueue open_queue(const QueueChoice& choice, const config::OptionSet& set) {
  if (choice.folder) {
    const Path folder = whole_folder(*choice.folder);
    if (is_listed(folder)) return job::JobQueue(folder, job::chosen_cluster(set));
    throw UsageError(fmt::format("--job-queue {}: no such folder", choice.folder->string()),
                     "dtrain train --detach --job-queue FOLDER makes a queue with its first job");
  }
  if (const auto registry = launcher::read_agent_registry(launcher::kAgentRegistryFile))
    return job::JobQueue(job::queue_of_cluster(registry->shared_folder, registry->cluster), registry->cluster);
  throw UsageError("which queue? This machine is no node of a cluster",
                   "add --cluster NAME, or --job-queue FOLDER for a queue on this machine");
}

std::string state_name(const job::QueuedJob& job) {
  return job.spec ? enum_name(job::kJobStateNames, job.record.state) : "unreadable";
}

std::string time_text(std::int64_t seconds) { return seconds == 0 ? "-" : utc_text(std::chrono::seconds(seconds)); }

Json job_json(const job::QueuedJob& job) {
  Json json = Json::object({{"job", job.number}, {"state", state_name(job)}, {"folder", job.folder.string()}});
  if (!job.spec) {
    json["why"] = job.problem;
    return json;
  }
  const auto time = [](std::int64_t seconds) { return seconds == 0 ? Json() : Json(time_text(seconds)); };
  json["why"] = job.record.why;
  json["priority"] = job.spec->priority;
  json["command"] = job::command_text(*job.spec);
  json["runs_in"] = job.spec->folder.string();
  json["job_dir"] = job.job_folder().path.string();
  json["output"] = job.output().string();
  json["attempts"] = job.record.attempts;
  json["exit_code"] = job.record.is_over() ? Json(job.record.exit_code) : Json();
  json["submitted"] = time(job.spec->submitted);
  json["begun"] = time(job.record.begun);
  json["ended"] = time(job.record.ended);
  json["cancelled"] = job.cancelled;
  return json;
}

Json job_document(const job::QueuedJob& job) {
  Json json = job_json(job);
  json["schema"] = "dtrain.job/1";
  return json;
}

job::QueuedJob wait_for_job(job::JobQueue& queue, int number) {
  for (;;) {
    job::QueuedJob job = queue.at(number);
    if (!job.spec) throw DataError(job.problem, fmt::format("remove {} to forget the job", job.folder.string()));
    if (job.record.is_over()) return job;
    if (stop_signal() != 0) throw Interrupted(stop_signal(), fmt::format("stopped waiting; job {} goes on", number));
    std::this_thread::sleep_for(kLookAtJob);
  }
}

ExitCode exit_code_of(const job::QueuedJob& job) {
  if (job.record.state == job::JobState::done) return ExitCode::ok;
  if (job.record.state != job::JobState::failed) return ExitCode::resumable;
  return job.record.exit_code > 0 && job.record.exit_code < 128 ? static_cast<ExitCode>(job.record.exit_code)
                                                                : ExitCode::failed;
}

}  // namespace dtrain::cli
