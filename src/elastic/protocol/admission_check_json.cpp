#include <dtrain/base/error.hpp>
#include <dtrain/elastic/admission_check.hpp>

#include "agent/worker_output.hpp"

namespace dtrain::elastic {
namespace {

using Stage = AdmissionCheckResult::Stage;

constexpr int kLastPrepare = static_cast<int>(AdmissionCheckResult::Prepare::by_hand);

Json json_of(std::chrono::milliseconds time) { return std::int64_t{time.count()}; }

std::chrono::milliseconds milliseconds_of(const Json& json) { return std::chrono::milliseconds(json.as_integer()); }

AdmissionCheckResult::Prepare prepare_of(const Json& json) {
  const std::int64_t number = json.as_integer();
  if (number < 0 || number > kLastPrepare) throw DataError("the result of a host's preparation is unknown");
  return static_cast<AdmissionCheckResult::Prepare>(number);
}

Stage stage_of(const std::string& name) {
  for (const Stage stage : {Stage::none, Stage::prepare, Stage::health}) {
    if (name == stage_name(stage)) return stage;
  }
  throw DataError("the stage of a host's preparation is unknown");
}

}  // namespace

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::prepare:
      return "prepare";
    case Stage::health:
      return "health";
    case Stage::none:
      break;
  }
  return "";
}

Path prepare_success_file(const Path& job_folder, const std::string& host) {
  return job_folder / ("prepare_data_success_" + file_name_of(host));
}

Json to_json(const AdmissionCheckOptions& options) {
  return Json::object({{"prepare", options.prepare},
                       {"prepare_timeout_ms", json_of(options.prepare_timeout)},
                       {"check_timeout_ms", json_of(options.check_timeout)},
                       {"asked_at_us", std::int64_t{options.asked_at.count()}}});
}

AdmissionCheckOptions admission_check_options_from_json(const Json& json) {
  return {json.at("prepare").as_string(), milliseconds_of(json.at("prepare_timeout_ms")),
          milliseconds_of(json.at("check_timeout_ms")), std::chrono::microseconds(json.at("asked_at_us").as_integer())};
}

Json to_json(const AdmissionCheckResult& result) {
  Json lines = Json::array();
  for (const std::string& line : result.last_lines) lines.push_back(line);
  return Json::object({{"prepare", static_cast<int>(result.prepare)},
                       {"stage", stage_name(result.stage)},
                       {"failure", result.failure},
                       {"last_lines", std::move(lines)},
                       {"note", result.note},
                       {"health", result.health},
                       {"prepare_seconds", result.prepare_seconds},
                       {"check_seconds", result.check_seconds}});
}

AdmissionCheckResult admission_check_result_from_json(const Json& json) {
  AdmissionCheckResult result;
  result.prepare = prepare_of(json.at("prepare"));
  result.stage = stage_of(json.at("stage").as_string());
  result.failure = json.at("failure").as_string();
  for (const Json& line : json.at("last_lines").as_array()) result.last_lines.push_back(line.as_string());
  result.note = json.at("note").as_string();
  result.health = json.at("health");
  result.prepare_seconds = json.at("prepare_seconds").as_number();
  result.check_seconds = json.at("check_seconds").as_number();
  return result;
}

}  // namespace dtrain::elastic
