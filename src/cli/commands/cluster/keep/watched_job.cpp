#include "watched_job.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>

namespace dtrain::cli {

job::TagSyncJob& WatchedJob::job() {
  if (job_) return *job_;
  if (place_.here || cluster::registry_of(place_.cluster)) {
    const bool is_working_directory = place_.here && place_.job_folder.empty();
    job_ = job::make_local_job(is_working_directory ? "." : place_.job_folder, place_.cluster);
    return *job_;
  }
  head_.emplace(cluster::read_fleet(cloud_.aws(), place_.cluster), std::chrono::seconds(0));
  job_ = job::make_remote_job(*head_, place_.job_folder);
  return *job_;
}

void WatchedJob::lose() {
  job_.reset();
  head_.reset();
}

// A head that boots or is away tells nothing, and the next look asks it again.
std::optional<cluster::TagSyncView> WatchedJob::look(const cluster::Fleet& fleet) {
  if (!place_.ask) return std::nullopt;
  try {
    return job().look(fleet);
  } catch (const Stopped&) {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    lose();
    reporter_.detail(error.what());
    return cluster::TagSyncView{.unknown = error.what()};
  }
}

std::string WatchedJob::stop_job() {
  using Stop = job::TagSyncJob::Stop;
  if (!place_.ask) return "the job was not stopped first, because of --no-head";
  try {
    const Stop stop = job().stop("the budget is spent");
    cloud_.begin_again();  // that may have taken minutes
    if (stop == Stop::no_job) return "no job ran";
    return stop == Stop::resumable ? "the job was stopped with a checkpoint"
                                   : "the job was stopped without a checkpoint";
  } catch (const Stopped&) {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    lose();
    return fmt::format("the job could not be stopped first: {}", error.what());
  }
}

}  // namespace dtrain::cli
