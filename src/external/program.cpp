#include <dtrain/external/program.hpp>

#include <algorithm>
#include <fstream>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/json_words.hpp>

namespace dtrain::external {
namespace {

constexpr std::size_t kLookedAt = 1 << 20;  // bytes of a file

std::string beginning_of(const Path& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return {};
  std::ifstream stream(file, std::ios::binary);
  std::string text(kLookedAt, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

Path file_of_module(std::string module) {
  std::ranges::replace(module, '.', '/');
  std::error_code none;
  return std::filesystem::is_directory(module, none) ? Path(module) / "__main__.py" : Path(module + ".py");
}

}  // namespace

bool mentions(const std::vector<std::string>& command, const std::vector<std::string_view>& words) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    const bool is_module = i > 0 && command[i - 1] == "-m";
    const std::string text = command[i] + beginning_of(is_module ? file_of_module(command[i]) : Path(command[i]));
    if (std::ranges::all_of(words, [&](std::string_view word) { return text.find(word) != text.npos; })) return true;
  }
  return false;
}

Json to_json(const Program& program) {
  return Json::object({{"command", words_to_json(program.command)},
                       {"fills_placeholders", program.fills_placeholders},
                       {"servers", program.servers},
                       {"horovod", program.horovod},
                       {"jax", program.jax},
                       {"gpus_per_rank", program.gpus_per_rank},
                       {"environment", words_to_json(program.environment)},
                       {"worker_environment", words_to_json(program.worker_environment)},
                       {"server_environment", words_to_json(program.server_environment)},
                       {"stop_signal", program.stop_signal},
                       {"interrupt_signal", program.interrupt_signal},
                       {"save_signal", program.save_signal},
                       {"save_timeout_ms", static_cast<std::int64_t>(program.save_timeout.count())},
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
  program.horovod = json.at("horovod").as_bool();
  program.jax = json.at("jax").as_bool();
  program.gpus_per_rank = static_cast<int>(json.at("gpus_per_rank").as_integer());
  program.environment = words_from_json(json.at("environment"));
  program.worker_environment = words_from_json(json.at("worker_environment"));
  program.server_environment = words_from_json(json.at("server_environment"));
  program.stop_signal = static_cast<int>(json.at("stop_signal").as_integer());
  program.interrupt_signal = static_cast<int>(json.at("interrupt_signal").as_integer());
  program.save_signal = static_cast<int>(json.at("save_signal").as_integer());
  program.save_timeout = std::chrono::milliseconds(json.at("save_timeout_ms").as_integer());
  program.grace = std::chrono::milliseconds(json.at("grace_ms").as_integer());
  program.max_restarts = static_cast<int>(json.at("max_restarts").as_integer());
  program.fruitless_limit = static_cast<int>(json.at("fruitless_limit").as_integer());
  program.job = json.at("job").as_string();
  return program;
}

}  // namespace dtrain::external
