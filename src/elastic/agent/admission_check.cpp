#include "admission_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/records.hpp>

namespace dtrain::elastic {
namespace {

constexpr const char* kSchema = "dtrain.prepared/1";
constexpr double kWorthTelling = 10;  // difference of two clocks in seconds

std::string hash_of(const std::string& command) { return sha256_hex(bytes_of(command)); }

// By this machine's clock. Includes the message's travel time, so it is never quite 0.
double seconds_since(std::chrono::microseconds moment) {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch() - moment).count();
}

// dtrain's own record in the success file; null: the user made the file, or it cannot be read. Either counts.
Json own_record(const Path& file) {
  try {
    const Json json = Json::parse(read_file(file), file.string());
    const Json* schema = json.is_object() ? json.find("schema") : nullptr;
    return schema && *schema == Json(kSchema) ? json : Json();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

void AdmissionCheck::run(const AdmissionCheckOptions& options, std::function<void(AdmissionCheckResult)> answer) {
  if (std::exchange(answer_, std::move(answer))) return;
  options_ = options;
  result_ = {};
  clock_offset_ = options.asked_at.count() == 0 ? 0 : seconds_since(options.asked_at);
  options_.prepare.empty() || is_prepared_already() ? check() : prepare();
}

// A success file of another command does not count for this one. One that names no command was made by hand.
bool AdmissionCheck::is_prepared_already() {
  const Path file = prepare_success_file(setting_.job_folder, setting_.host);
  if (!is_listed(file)) return false;
  const Json record = own_record(file);
  const Json* command = record.is_null() ? nullptr : record.find("command_sha256");
  if (command && *command != Json(hash_of(options_.prepare))) return false;
  result_.prepare = command ? AdmissionCheckResult::Prepare::earlier : AdmissionCheckResult::Prepare::by_hand;
  return true;
}

void AdmissionCheck::prepare() {
  result_.stage = Stage::prepare;
  start({"/bin/sh", "-c", options_.prepare}, "", options_.prepare_timeout, &AdmissionCheck::prepared);
}

void AdmissionCheck::prepared(const BackgroundCommand::Ended& ended) {
  result_.prepare_seconds = ended.seconds;
  const std::string why = describe_end(ended);
  if (!why.empty()) return fail(Stage::prepare, fmt::format("the prepare command {}", why), ended.last_lines);
  result_.prepare = AdmissionCheckResult::Prepare::ran;
  write_success();
  check();
}

void AdmissionCheck::write_success() {
  const Json record = Json::object({{"schema", kSchema},
                                    {"host", setting_.host},
                                    {"command_sha256", hash_of(options_.prepare)},
                                    {"seconds", result_.prepare_seconds},
                                    {"time", format_time(std::chrono::system_clock::now())}});
  try {
    write_file_atomic(prepare_success_file(setting_.job_folder, setting_.host), record.dump() + "\n");
  } catch (const Error& error) {
    result_.note = fmt::format("it is prepared, but that cannot be noted: {}", error.what());
  }
}

void AdmissionCheck::check() {
  if (setting_.check.empty()) return finish();
  result_.stage = Stage::health;
  start(setting_.check, setting_.check_input, options_.check_timeout, &AdmissionCheck::checked);
}

// The last line of the output is the answer: {"failure": "", ...measurements}.
void AdmissionCheck::checked(const BackgroundCommand::Ended& ended) {
  result_.check_seconds = ended.seconds;
  const std::string why = describe_end(ended);
  if (!why.empty()) return fail(Stage::health, fmt::format("the health check {}", why), ended.last_lines);
  try {
    if (ended.last_lines.empty()) throw DataError("the health check said nothing");
    result_.health = Json::parse(ended.last_lines.back(), "the health check's answer");
    result_.health["clock_offset_seconds"] = clock_offset_;
    const std::string failure = result_.health.at("failure").as_string();
    if (!failure.empty()) return fail(Stage::health, failure, {});
  } catch (const DataError& error) {
    return fail(Stage::health, error.what(), ended.last_lines);
  }
  judge_clock();
  finish();
}

// Only the times in logs depend on the clock, so a difference is a note.
void AdmissionCheck::judge_clock() {
  if (std::abs(clock_offset_) < kWorthTelling) return;
  result_.note += fmt::format("{}its clock is {} {} the coordinator's", result_.note.empty() ? "" : "; ",
                              format_duration(std::chrono::duration<double>(std::abs(clock_offset_))),
                              clock_offset_ > 0 ? "ahead of" : "behind");
}

void AdmissionCheck::start(std::vector<std::string> command, std::string input, std::chrono::milliseconds deadline,
                           void (AdmissionCheck::*on_end)(const BackgroundCommand::Ended&)) {
  BackgroundCommand::Options options{
      .spawn = spawn_of(std::move(command)), .input = std::move(input), .mark = setting_.mark, .deadline = deadline};
  options.spawn.environment = setting_.environment;
  options.spawn.environment.push_back("DTRAIN_HOST=" + setting_.host);
  options.spawn.environment.push_back("DTRAIN_JOB_DIR=" + setting_.job_folder.string());
  options.spawn.folder = setting_.folder;
  command_ = std::make_shared<BackgroundCommand>(loop_, prepare_log(setting_.job_folder, setting_.host));
  try {
    command_->start(std::move(options),
                    [this, on_end, alive = std::weak_ptr(alive_)](const BackgroundCommand::Ended& ended) {
                      if (!alive.expired()) (this->*on_end)(ended);
                    });
  } catch (const Error& error) {
    fail(result_.stage, error.what(), {});
  }
}

void AdmissionCheck::fail(Stage stage, const std::string& reason, std::vector<std::string> last_lines) {
  result_.stage = stage;
  result_.failure = reason;
  result_.last_lines = std::move(last_lines);
  finish();
}

void AdmissionCheck::finish() {
  command_ = nullptr;
  const auto answer = std::exchange(answer_, nullptr);
  answer(std::exchange(result_, {}));
}

}  // namespace dtrain::elastic
