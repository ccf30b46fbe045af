#include "run_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/stop.hpp>

#include "config/checks/idle_options.hpp"
#include "config/config_file.hpp"
#include "job/spec/job_client.hpp"

namespace dtrain::job {
namespace {

FileLock claim(const JobFolder& folder, const config::TrainOptions& options, Reporter& reporter) {
  make_folder(folder.path);
  FileLock lock = coordinate(folder);
  refuse_living_job(folder);
  if (!options.resume) set_other_records_aside(folder, options, reporter);
  return lock;
}

// The --model-prefix that train.toml names; empty: none. nullopt: the file does not say.
std::optional<std::string> recorded_prefix(const Path& configuration) {
  if (!std::filesystem::exists(configuration)) return std::nullopt;
  try {
    for (const config::ConfigEntry& entry : config::parse_config(read_file(configuration), configuration.string())) {
      if (entry.key == "model-prefix" && !entry.is_list) return entry.values.front();
    }
    return "";
  } catch (const Error&) {  // somebody changed it
    return std::nullopt;
  }
}

// "job/run-1", the first that is free.
Path folder_aside(const JobFolder& folder) {
  for (int number = 1;; ++number) {
    Path aside = folder.path / fmt::format("run-{}", number);
    if (!std::filesystem::exists(aside)) return aside;
  }
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

RunRecords::RunRecords(const JobFolder& folder, const config::TrainOptions& options, Reporter& reporter)
    : reporter_(reporter), lock_(claim(folder, options, reporter)), steps_(folder.steps()), events_(folder.events()) {
  steps_.begin(options.resume);
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
  append(make_event(EventKind::finish, {{"exit_code", static_cast<int>(code)}, {"reason", reason}}));
}

void RunRecords::append(const Json& event) {
  record([&] { events_.append(event, std::chrono::system_clock::now()); });
}

void set_other_records_aside(const JobFolder& folder, const config::TrainOptions& options, Reporter& reporter) {
  const auto& prefix = options.model_prefix;
  if (!std::filesystem::exists(folder.steps()) && !std::filesystem::exists(folder.events())) return;
  if (prefix && folder.path == folder_of_prefix(*prefix).path) return;
  const std::optional<std::string> theirs = recorded_prefix(folder.configuration());
  if (!theirs || *theirs == (prefix ? prefix->string() : "")) return;
  const Path aside = folder_aside(folder);
  try {
    make_folder(aside);
    for (const Path& file : {folder.steps(), folder.events(), folder.configuration(), folder.first_configuration()}) {
      if (std::filesystem::exists(file)) std::filesystem::rename(file, aside / file.filename());
    }
  } catch (const std::exception& error) {
    reporter.warn(fmt::format("{}: its records stay beside those of this run: {}", folder.path.string(), error.what()));
    return;
  }
  reporter.note(fmt::format("{} has the records of another run, {}: they are in {} now", folder.path.string(),
                            theirs->empty() ? "without --model-prefix" : "--model-prefix " + *theirs, aside.string()));
}

static void keep_first(const JobFolder& folder, const std::string& newest) {
  const Path now = folder.configuration(), first = folder.first_configuration();
  const bool is_first = std::filesystem::exists(now) && !std::filesystem::exists(first);
  if (is_first && read_file(now) != newest) std::filesystem::rename(now, first);
}

// A run that takes the options again begins elsewhere: it is resumed, or has another --model-prefix.
static std::string comment_of_start(const config::TrainOptions& settled) {
  if (!settled.load_epoch) return {};
  return fmt::format("# load-epoch = {}  (where this run began)\n", *settled.load_epoch);
}

// Defaults that the run did not have: it took another value from its data or weights, or none.
static std::vector<std::string> replaced_defaults(const config::OptionSet& set, const config::TrainOptions& settled) {
  config::TrainOptions of_run;
  config::OptionSet run;
  config::bind(run, of_run);
  of_run = settled;
  std::vector<std::string> names;
  for (const config::Option& option : set.options()) {
    const std::string name = option.name();
    if (option.source != config::Source::recipe) continue;
    if (option.show() != run.find(name)->show() || !config::has_effect(settled, name)) names.push_back(name);
  }
  return names;
}

void keep_configuration(const JobFolder& folder, const config::OptionSet& set, const config::TrainOptions& settled,
                        Reporter& reporter) {
  const std::string head =
      "# The options of a training: `dtrain train --config FILE --model-prefix NEW` takes them again, but for "
      "--job-dir,\n"
      "# which each run has for itself. In comments: what another option chose.\n";
  std::vector<std::string> left_out{"resume", "load-epoch", "force", "dry-run", "detach", "job-dir"};
  if (!settled.pretrained.file) left_out.insert(left_out.end(), {"pretrained", "new-head"});
  std::ranges::copy(replaced_defaults(set, settled), std::back_inserter(left_out));
  try {
    make_folder(folder.path);
    const std::string text = head + config::config_table(set, "train", left_out) + comment_of_start(settled);
    if (settled.resume) {
      keep_first(folder, text);
    } else {
      std::error_code stays;  // where it cannot be removed, the new file cannot be written either
      std::filesystem::remove(folder.first_configuration(), stays);
    }
    write_file_atomic(folder.configuration(), text);
  } catch (const std::exception& error) {
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
