#include "stop_job.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/cluster/cluster_head.hpp>

namespace dtrain::cli {

std::string stopped_text(job::StopOutcome stop) {
  using Stop = job::StopOutcome;
  if (stop == Stop::no_job) return "no job ran";
  return stop == Stop::resumable ? "the job was stopped with a checkpoint" : "the job was stopped without a checkpoint";
}

std::string stop_job_on(const cluster::Fleet& fleet, const std::string& why) {
  cluster::ClusterHead head(fleet, std::chrono::seconds(0));
  return stopped_text(job::make_remote_job(head, {})->stop(why, fleet));
}

void end_jobs_on(const cluster::Fleet& fleet, Reporter& reporter) {
  const auto failure = attempt([&] {
    cluster::ClusterHead head(fleet, std::chrono::seconds(0));
    if (!head.has_program()) return;  // it was never installed, so nothing runs
    job::cancel_jobs(head);
    reporter.note(stopped_text(job::make_remote_job(head, {})->stop("the cluster is to end", fleet)));
  });
  if (failure) {
    reporter.warn(fmt::format("the jobs of cluster {} could not be stopped first: {}", fleet.name, failure->what()));
  }
}

}  // namespace dtrain::cli
