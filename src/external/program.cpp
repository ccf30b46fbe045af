#include <dtrain/external/program.hpp>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json_words.hpp>

namespace dtrain::external {
Json to_json(const Program& program) {
  return Json::object({{"command", words_to_json(program.command)},
                       {"fills_placeholders", program.fills_placeholders},
                       {"servers", program.servers},
                       {"environment", words_to_json(program.environment)},
                       {"worker_environment", words_to_json(program.worker_environment)},
                       {"server_environment", words_to_json(program.server_environment)},
                       {"elastic", program.elastic},
                       {"stop_signal", program.stop_signal},
                       {"grace_ms", static_cast<std::int64_t>(program.grace.count())},
                       {"max_restarts", program.max_restarts},
                       {"fruitless_limit", program.fruitless_limit},
                       {"job", program.job}});
}

Program program_from_json(const Json& json) {
  Program program;
  program.command = words_from_json(json.at("command"));
  if (program.command.empty()) throw DataError("the job's program has no command");
  program.fills_placeholders = json.at("fills_placeholders").as_bool();
  program.servers = static_cast<int>(json.at("servers").as_integer());
  program.environment = words_from_json(json.at("environment"));
  program.worker_environment = words_from_json(json.at("worker_environment"));
  program.server_environment = words_from_json(json.at("server_environment"));
  program.elastic = json.at("elastic").as_bool();
  program.stop_signal = static_cast<int>(json.at("stop_signal").as_integer());
  program.grace = std::chrono::milliseconds(json.at("grace_ms").as_integer());
  program.max_restarts = static_cast<int>(json.at("max_restarts").as_integer());
  program.fruitless_limit = static_cast<int>(json.at("fruitless_limit").as_integer());
  program.job = json.at("job").as_string();
  return program;
}

}  // namespace dtrain::external
