#include <dtrain/base/error.hpp>
#include <dtrain/elastic/gate.hpp>

#include "agent/worker_output.hpp"

namespace dtrain::elastic {
namespace {

constexpr int kLastPrepare = static_cast<int>(GateResult::Prepare::by_hand);

Json json_of(std::chrono::milliseconds time) { return std::int64_t{time.count()}; }

std::chrono::milliseconds milliseconds_of(const Json& json) { return std::chrono::milliseconds(json.as_integer()); }

GateResult::Prepare prepare_of(const Json& json) {
  const std::int64_t number = json.as_integer();
  if (number < 0 || number > kLastPrepare) throw DataError("a result of a host's preparation that nobody knows");
  return static_cast<GateResult::Prepare>(number);
}

}  // namespace

Path prepare_success_file(const Path& job_folder, const std::string& host) {
  return job_folder / ("prepare_data_success_" + file_name_of(host));
}

Json to_json(const GateOptions& options) {
  return Json::object({{"prepare", options.prepare},
                       {"prepare_timeout_ms", json_of(options.prepare_timeout)},
                       {"check_timeout_ms", json_of(options.check_timeout)},
                       {"asked_at_us", std::int64_t{options.asked_at.count()}}});
}

GateOptions gate_options_from_json(const Json& json) {
  return {json.at("prepare").as_string(), milliseconds_of(json.at("prepare_timeout_ms")),
          milliseconds_of(json.at("check_timeout_ms")), std::chrono::microseconds(json.at("asked_at_us").as_integer())};
}

Json to_json(const GateResult& result) {
  Json lines = Json::array();
  for (const std::string& line : result.last_lines) lines.push_back(line);
  return Json::object({{"prepare", static_cast<int>(result.prepare)},
                       {"stage", result.stage},
                       {"failure", result.failure},
                       {"last_lines", std::move(lines)},
                       {"note", result.note},
                       {"health", result.health},
                       {"prepare_seconds", result.prepare_seconds},
                       {"check_seconds", result.check_seconds}});
}

GateResult gate_result_from_json(const Json& json) {
  GateResult result;
  result.prepare = prepare_of(json.at("prepare"));
  result.stage = json.at("stage").as_string();
  result.failure = json.at("failure").as_string();
  for (const Json& line : json.at("last_lines").as_array()) result.last_lines.push_back(line.as_string());
  result.note = json.at("note").as_string();
  result.health = json.at("health");
  result.prepare_seconds = json.at("prepare_seconds").as_number();
  result.check_seconds = json.at("check_seconds").as_number();
  return result;
}

}  // namespace dtrain::elastic
