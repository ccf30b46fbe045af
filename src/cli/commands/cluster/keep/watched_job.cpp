#include "watched_job.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>

#include "stop_job.hpp"

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
  cluster::TagSyncView view;
  if (const auto failure = attempt([&] { view = job().look(fleet); })) {
    lose();
    reporter_.detail(failure->what());
    return cluster::TagSyncView{.unknown = failure->what()};
  }
  return view;
}

std::string WatchedJob::stop_job(const cluster::Fleet& fleet) {
  if (!place_.ask) return "the job was not stopped first, because of --no-head";
  std::string said;
  const auto failure = attempt([&] { said = stopped_text(job().stop("the budget is spent", fleet)); });
  cloud_.begin_again();  // that may have taken minutes
  if (!failure) return said;
  lose();
  return fmt::format("the job could not be stopped first: {}", failure->what());
}

}  // namespace dtrain::cli
