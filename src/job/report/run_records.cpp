#include "run_records.hpp"

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>

#include "config/config_file.hpp"
#include "job/spec/job_client.hpp"

namespace dtrain::job {
namespace {

FileLock claim(const JobFolder& folder) {
  make_folder(folder.path);
  FileLock lock = coordinate(folder);
  refuse_living_job(folder);
  return lock;
}

ExitCode exit_code_of(const train::TrainResult& result) {
  if (!result.lost.empty()) return ExitCode::failed;
  if (result.ended != train::TrainResult::Ended::stopped) return ExitCode::ok;
  return result.saved ? ExitCode::resumable : static_cast<ExitCode>(128 + stop_signal());
}

std::string reason_of(const train::TrainResult& result) {
  if (!result.lost.empty()) return result.lost;
  return result.ended == train::TrainResult::Ended::stopped ? stop_reason(stop_signal()) : "training is complete";
}

}  // namespace

RunRecords::RunRecords(const JobFolder& folder, bool resumed, Reporter& reporter)
    : reporter_(reporter), lock_(claim(folder)), steps_(folder.steps()), events_(folder.events()) {
  steps_.begin(resumed);
}

void RunRecords::on_event(const train::ReportEvent& event) {
  record([&] {
    if (const auto* step = std::get_if<train::StepReport>(&event)) return steps_.on_step(*step);
    if (const auto* epoch = std::get_if<train::EpochReport>(&event)) steps_.on_epoch(*epoch);
  });
  if (!std::holds_alternative<train::StepReport>(event)) append(train::to_json(event));
}

void RunRecords::end(const train::TrainResult& result) { finish(exit_code_of(result), reason_of(result)); }
void RunRecords::fail(const Error& error) { finish(error.exit_code(), error.what()); }

void RunRecords::finish(ExitCode code, const std::string& reason) {
  record([&] { steps_.end(); });
  append(Json::object({{"event", "finish"}, {"exit_code", static_cast<int>(code)}, {"reason", reason}}));
}

void RunRecords::append(const Json& event) {
  record([&] { events_.append(event, std::chrono::system_clock::now()); });
}

void keep_configuration(const JobFolder& folder, const config::OptionSet& set, bool resumed, Reporter& reporter) {
  if (resumed && std::filesystem::exists(folder.configuration())) return;
  const std::string head =
      "# The options of a training: `dtrain train --config FILE --model-prefix NEW` takes them again. In comments: "
      "what\n"
      "# another option chose.\n";
  try {
    make_folder(folder.path);
    write_file_atomic(folder.configuration(),
                      head + config::config_table(set, "train", {"resume", "force", "dry-run", "detach"}));
  } catch (const Error& error) {
    reporter.warn(error.what());
  }
}

void RunRecords::record(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    if (complaints_.insert(error.what()).second) reporter_.warn(error.what());
  }
}

}  // namespace dtrain::job
