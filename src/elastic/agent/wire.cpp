#include "wire.hpp"

#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/agent.hpp>

namespace dtrain::elastic {
namespace {

constexpr std::size_t kHead = 9;

// JSON holds text, an environment holds bytes: each byte travels as the character of that number (Latin-1).
std::string text_of_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x80) {
      text += byte;
    } else {
      text += static_cast<char>(0xc0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  return text;
}

std::string bytes_of_text(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = static_cast<unsigned char>(text[i]);
    if (code < 0x80) {
      bytes += text[i];
    } else if (code < 0xc4 && i + 1 < text.size()) {
      bytes += static_cast<char>((code & 0x03) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
    } else {
      throw DataError("a text that stands for bytes holds a character above 255");
    }
  }
  return bytes;
}

Json json_of(const std::vector<std::string>& texts) {
  Json::Array array;
  for (const std::string& text : texts) array.emplace_back(text_of_bytes(text));
  return Json(std::move(array));
}

std::vector<std::string> texts_of(const Json& json) {
  std::vector<std::string> texts;
  for (const Json& text : json.as_array()) texts.push_back(bytes_of_text(text.as_string()));
  return texts;
}

}  // namespace

std::string encode(Tag tag, WorkerId worker, std::string_view body) {
  std::string frame(1, static_cast<char>(tag));
  for (int shift = 0; shift < 64; shift += 8) frame += static_cast<char>(worker >> shift & 0xff);
  frame += body;
  return frame;
}

AgentFrame decode(std::string frame) {
  constexpr std::string_view kTags = "jwske>ox";
  if (frame.size() < kHead || kTags.find(frame[0]) == kTags.npos) throw DataError("no frame of an agent");
  AgentFrame decoded{static_cast<Tag>(frame[0]), 0, frame.substr(kHead)};
  for (std::size_t i = 0; i < 8; ++i) {
    decoded.worker |= WorkerId{static_cast<unsigned char>(frame[1 + i])} << 8 * i;
  }
  return decoded;
}

Json to_json(const Joined& joined) { return Json::object({{"host", joined.host}, {"tree", joined.tree}}); }

Joined joined_from_json(const Json& json) { return {json.at("host").as_string(), json.at("tree").as_string()}; }

Json to_json(const Welcome& welcome) {
  return Json::object({{"environment", json_of(welcome.environment)},
                       {"folder", text_of_bytes(welcome.folder)},
                       {"document", welcome.document},
                       {"forward_output", welcome.forward_output}});
}

Welcome welcome_from_json(const Json& json) {
  return {texts_of(json.at("environment")), bytes_of_text(json.at("folder").as_string()), json.at("document"),
          json.at("forward_output").as_bool()};
}

Json to_json(const Exited& exited) {
  return Json::object(
      {{"exit_code", exited.exit_code}, {"signal", exited.signal}, {"last_lines", json_of(exited.last_lines)}});
}

Exited exited_from_json(const Json& json) {
  return {static_cast<int>(json.at("exit_code").as_integer()), static_cast<int>(json.at("signal").as_integer()),
          texts_of(json.at("last_lines"))};
}

Json to_json(const WorkerJob& job) {
  return Json::object({{"worker", job.worker},
                       {"host", job.host},
                       {"slot", job.slot},
                       {"address", job.address},
                       {"token", job.token},
                       {"job_folder", text_of_bytes(job.job_folder)},
                       {"document", job.document}});
}

WorkerJob worker_job_from_json(const Json& json) {
  return {static_cast<WorkerId>(json.at("worker").as_integer()),
          json.at("host").as_string(),
          static_cast<int>(json.at("slot").as_integer()),
          json.at("address").as_string(),
          json.at("token").as_string(),
          bytes_of_text(json.at("job_folder").as_string()),
          json.at("document")};
}

Json to_json(const AgentJoin& join) {
  return Json::object({{"address", join.address},
                       {"port", int{join.port}},
                       {"token", join.token},
                       {"host", join.host},
                       {"job_folder", text_of_bytes(join.job_folder)},
                       {"tree", join.tree}});
}

AgentJoin agent_join_from_json(const Json& json) {
  return {json.at("address").as_string(),
          static_cast<std::uint16_t>(json.at("port").as_integer()),
          json.at("token").as_string(),
          json.at("host").as_string(),
          bytes_of_text(json.at("job_folder").as_string()),
          json.at("tree").as_string()};
}

std::string tree_mark(const AgentJoin& join) { return "DTRAIN_TREE=" + join.tree + "."; }

}  // namespace dtrain::elastic
