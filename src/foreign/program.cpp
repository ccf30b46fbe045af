#include <dtrain/foreign/program.hpp>

#include <dtrain/base/error.hpp>

namespace dtrain::foreign {
namespace {

// JSON has no bytes, and arguments need not be UTF-8: each byte above 0x7f becomes the character of that number.
std::string to_characters(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xc0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return text;
}

std::string to_bytes(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
    } else if (i + 1 < text.size() && first <= 0xc3) {
      const auto second = static_cast<unsigned char>(text[++i]);
      bytes += static_cast<char>((first & 0x03) << 6 | (second & 0x3f));
    } else {
      throw DataError("a word of the program is damaged");
    }
  }
  return bytes;
}

Json words(const std::vector<std::string>& list) {
  Json json = Json::array();
  for (const std::string& word : list) json.push_back(to_characters(word));
  return json;
}

std::vector<std::string> words_from(const Json& json) {
  std::vector<std::string> list;
  for (const Json& word : json.as_array()) list.push_back(to_bytes(word.as_string()));
  return list;
}

}  // namespace

Json to_json(const Program& program) {
  return Json::object({{"command", words(program.command)},
                       {"fills_placeholders", program.fills_placeholders},
                       {"servers", program.servers},
                       {"environment", words(program.environment)},
                       {"worker_environment", words(program.worker_environment)},
                       {"server_environment", words(program.server_environment)},
                       {"stop_signal", program.stop_signal},
                       {"grace_ms", static_cast<std::int64_t>(program.grace.count())},
                       {"max_restarts", program.max_restarts},
                       {"fruitless_limit", program.fruitless_limit},
                       {"job", program.job}});
}

Program program_from_json(const Json& json) {
  Program program;
  program.command = words_from(json.at("command"));
  if (program.command.empty()) throw DataError("the job's program has no command");
  program.fills_placeholders = json.at("fills_placeholders").as_bool();
  program.servers = static_cast<int>(json.at("servers").as_integer());
  program.environment = words_from(json.at("environment"));
  program.worker_environment = words_from(json.at("worker_environment"));
  program.server_environment = words_from(json.at("server_environment"));
  program.stop_signal = static_cast<int>(json.at("stop_signal").as_integer());
  program.grace = std::chrono::milliseconds(json.at("grace_ms").as_integer());
  program.max_restarts = static_cast<int>(json.at("max_restarts").as_integer());
  program.fruitless_limit = static_cast<int>(json.at("fruitless_limit").as_integer());
  program.job = json.at("job").as_string();
  return program;
}

}  // namespace dtrain::foreign
