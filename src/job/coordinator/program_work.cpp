#include "program_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <dtrain/base/clock.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/records.hpp>
#include <dtrain/external/run_program.hpp>

#include "config/shard_choice.hpp"
#include "job/spec/host_list.hpp"

namespace dtrain::job {
namespace {

// Every change restarts all programs: changes within this time become one.
constexpr std::chrono::seconds kBetweenChanges{3};

// Since the first host list of the job that was begun last in this folder; 0: not known.
std::chrono::seconds age_of_job(const JobFolder& folder) {
  const auto now = std::chrono::system_clock::now();
  std::chrono::system_clock::time_point begun = now;
  try {
    for (const Json& event : elastic::read_events(folder.events())) {
      if (!begins_job(event)) continue;
      if (const auto time = unix_time_of(event.find_text("time"))) begun = std::chrono::system_clock::time_point(*time);
    }
  } catch (const Error&) {  // the folder is not available now
  }
  return std::chrono::floor<std::chrono::seconds>(std::max(now, begun) - begun);
}

config::LaunchOptions with_most_workers(config::LaunchOptions options, int workers) {
  if (options.job.elastic && options.job.max_workers == 0)
    options.job.max_workers = config::default_max_workers(workers);
  return options;
}

}  // namespace

void require_program(const external::Program& program, const config::JobOptions& job) {
  const bool is_known_here = !job.is_on_other_machines() && job.sync_to.empty() && job.prepare.empty();
  if (!is_known_here) return;
  external::check_program(program, with_variables(own_environment(), job.environment));
}

ProgramWork::ProgramWork(config::LaunchOptions options, external::Program program, const elastic::HostList& hosts,
                         Reporter& reporter)
    : options_(with_most_workers(std::move(options), workers_of(hosts))),
      program_(std::move(program)),
      reporter_(reporter),
      hosts_(hosts.hosts.size()) {}

ProgramWork::ProgramWork(const config::ProgramSpec& spec, const JobFolder& folder, Reporter& reporter)
    : options_(spec.options), program_(spec.program), reporter_(reporter) {
  begun_ -= age_of_job(folder);
}

Json ProgramWork::document() const {
  return to_json(config::make_run_spec(config::ProgramSpec{.options = options_, .program = program_}));
}

// A rank that ends its program may use the whole grace while the others wait. A failed program does not make its host
// bad: --max-restarts limits the restarts.
void ProgramWork::adjust(elastic::Policy& policy) const {
  const auto saving = program_.save_signal == 0 ? std::chrono::milliseconds(0) : program_.save_timeout;
  policy.leave_timeout += program_.grace + saving;
  policy.stop_timeout += program_.grace + saving;
  policy.worker_grace += program_.grace + saving;
  policy.hang_floors.waiting += program_.grace + saving;
  policy.hang_floors.saving += program_.grace + saving;
  policy.fruitless_limit = std::numeric_limits<int>::max();
  policy.between_changes = kBetweenChanges;
}

void ProgramWork::begin(int workers) {
  workers_ = workers;
  begun_ = std::chrono::steady_clock::now();
}

void ProgramWork::show(const Json& report) {
  const std::optional<EventKind> kind = event_kind(report);
  if (kind == EventKind::started) tell_start(report);
  if (kind == EventKind::rank_failed) tell_failure(report);
}

void ProgramWork::tell_start(const Json& report) {
  if (tell_json(report)) return;
  const std::int64_t ranks = report.at("ranks").as_integer();
  reporter_.note(fmt::format("{}{} {} as generation {}",
                             report.at("restart").as_integer() > 0 ? "Started again: " : "Started ", ranks,
                             ranks == 1 ? "rank" : "ranks", report.at("generation").as_integer()));
}

void ProgramWork::tell_failure(const Json& report) {
  if (tell_json(report)) return;
  reporter_.warn(fmt::format("rank {} on {}: {}; all ranks start again ({} of --max-restarts {})",
                             report.at("rank").as_integer(), report.at("host").as_string(),
                             report.at("reason").as_string(), report.at("failures").as_integer(),
                             report.at("max_restarts").as_integer()));
}

// On the stream to which the rank wrote it; the output of a single rank without a prefix.
void ProgramWork::show_output(const std::string& worker, OutputStream stream, std::string_view line) {
  if (stream == OutputStream::output ? options_.hides_stdout : options_.hides_stderr) return;
  if (tell_json(Json::object({{"event", "output"}, {"worker", worker}, {"stream", name_of(stream)}, {"line", line}})))
    return;
  const std::string shown = workers_ == 1 ? std::string(line) : fmt::format("[{}] {}", worker, line);
  if (stream == OutputStream::output) {
    reporter_.answer(shown);
  } else {
    reporter_.pass_on(shown);
  }
}

bool ProgramWork::tell_json(const Json& event) {
  if (!reporter_.json()) return false;
  Json line = Json::object({{"schema", "dtrain.launch/1"}});
  for (const auto& [key, value] : event.as_object()) line[key] = value;
  reporter_.answer_json(line);
  return true;
}

void ProgramWork::end() {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun_;
  if (tell_json(Json::object({{"event", "result"},
                              {"exit_code", 0},
                              {"job_dir", options_.job.folder.string()},
                              {"seconds", took.count()}})))
    return;
  reporter_.note(fmt::format("All ranks are done, {} after the start", format_duration(took)));
}

void ProgramWork::fail(const elastic::Failure* first, const std::string& reason, ExitCode code) {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun_;
  Json result = Json::object({{"event", "result"},
                              {"exit_code", static_cast<int>(code)},
                              {"job_dir", options_.job.folder.string()},
                              {"seconds", took.count()},
                              {"reason", reason}});
  if (first) {
    Json lines = Json::array();
    for (const std::string& line : first->last_lines) lines.push_back(line);
    result["first_failure"] = Json::object({{"host", first->host},
                                            {"rank", first->rank >= 0 ? Json(first->rank) : Json()},
                                            {"reason", first->reason},
                                            {"last_lines", std::move(lines)}});
  }
  tell_json(result);
}

std::string ProgramWork::first_signal_words() const {
  return fmt::format("Stopping: the ranks have {:g} s to end; once more ends everything at once",
                     std::chrono::duration<double>(program_.grace).count());
}

std::string ProgramWork::what_next() { return "logs/ of the job folder has what every rank printed"; }

// On one machine the exit code is that of the program.
JobWork::FailureCode ProgramWork::exit_code_of(const elastic::Failure& failure, ExitCode of_job) const {
  const bool several = hosts_ > 1 && options_.job.is_on_other_machines();
  if (several || of_job != ExitCode::failed || failure.exit_code <= 0) return {of_job};
  return {static_cast<ExitCode>(failure.exit_code), true};
}

}  // namespace dtrain::job
