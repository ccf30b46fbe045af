#include "wire.hpp"

#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/agent.hpp>

namespace dtrain::elastic {
namespace {

constexpr std::size_t kHead = 9;

#define DTRAIN_FRAME_TAG(name, byte) byte,
constexpr char kTagBytes[] = {DTRAIN_FRAME_TAGS(DTRAIN_FRAME_TAG)};
#undef DTRAIN_FRAME_TAG
constexpr std::string_view kTags(kTagBytes, sizeof(kTagBytes));

// JSON holds text, an environment holds bytes: each byte travels as the character with its number (Latin-1).
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
  if (frame.size() < kHead || kTags.find(frame[0]) == kTags.npos)
    throw DataError("an agent or coordinator sent an invalid frame");
  AgentFrame decoded{static_cast<Tag>(frame[0]), 0, frame.substr(kHead)};
  for (std::size_t i = 0; i < 8; ++i) {
    decoded.worker |= WorkerId{static_cast<unsigned char>(frame[1 + i])} << 8 * i;
  }
  return decoded;
}

std::optional<AgentPoolEvent> event_of_host(const std::string& host, const AgentFrame& frame) {
  const auto report = [&] { return Json::parse(frame.body, "an agent's report"); };
  if (frame.tag == Tag::known) return HostKnows{host, number_of(frame.body)};
  if (frame.tag == Tag::stale_term) return StaleTerm{number_of(frame.body)};
  if (frame.tag == Tag::checked) return AdmissionChecked{host, admission_check_result_from_json(report())};
  if (frame.tag != Tag::notice) return std::nullopt;
  const Json notice = report();
  return HostNotice{host, notice.at("leave").as_bool(), notice.at("reason").as_string()};
}

std::uint64_t number_of(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 0) throw DataError("a number of an agent or coordinator cannot be read");
  return static_cast<std::uint64_t>(*number);
}

Json to_json(const JoinRequest& request) {
  return Json::object({{"host", request.host},
                       {"tree", request.tree},
                       {"term", request.term},
                       {"port", int{request.port}},
                       {"circles", to_json(request.voters)},
                       {"workers", to_json(request.workers)}});
}

JoinRequest join_request_from_json(const Json& json) {
  return {json.at("host").as_string(),
          json.at("tree").as_string(),
          static_cast<Term>(json.at("term").as_integer()),
          static_cast<std::uint16_t>(json.at("port").as_integer()),
          known_voters_from_json(json.at("circles")),
          worker_reports_from_json(json.at("workers"))};
}

Json to_json(const Welcome& welcome) {
  Json keep = Json::array();
  for (const WorkerId worker : welcome.keep) keep.push_back(worker);
  return Json::object({{"environment", json_of(welcome.environment)},
                       {"keep_own", welcome.keep_own},
                       {"folder", text_of_bytes(welcome.folder)},
                       {"document", welcome.document},
                       {"forward_output", welcome.forward_output},
                       {"term", welcome.term},
                       {"outlive", welcome.outlive},
                       {"silence_ms", welcome.silence.count()},
                       {"patience_ms", welcome.patience.count()},
                       {"grace_ms", welcome.grace.count()},
                       {"keep", std::move(keep)},
                       {"notice_url", welcome.notice_url}});
}

Welcome welcome_from_json(const Json& json) {
  const auto milliseconds = [&](std::string_view key) { return std::chrono::milliseconds(json.at(key).as_integer()); };
  Welcome welcome{.environment = texts_of(json.at("environment")),
                  .keep_own = json.at("keep_own").as_bool(),
                  .folder = bytes_of_text(json.at("folder").as_string()),
                  .document = json.at("document"),
                  .forward_output = json.at("forward_output").as_bool(),
                  .term = static_cast<Term>(json.at("term").as_integer()),
                  .outlive = json.at("outlive").as_bool(),
                  .silence = milliseconds("silence_ms"),
                  .patience = milliseconds("patience_ms"),
                  .grace = milliseconds("grace_ms"),
                  .keep = {},
                  .notice_url = json.at("notice_url").as_string()};
  for (const Json& worker : json.at("keep").as_array()) {
    welcome.keep.push_back(static_cast<WorkerId>(worker.as_integer()));
  }
  return welcome;
}

Json to_json(const Exited& exited) {
  return Json::object({{"exit_code", exited.exit_code},
                       {"signal", exited.signal},
                       {"last_lines", json_of(exited.last_lines)},
                       {"started", exited.started}});
}

Exited exited_from_json(const Json& json) {
  return {static_cast<int>(json.at("exit_code").as_integer()), static_cast<int>(json.at("signal").as_integer()),
          texts_of(json.at("last_lines")), json.at("started").as_bool()};
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

Json to_json(const AgentOrder& order) {
  return Json::object({{"address", order.address},
                       {"more_addresses", json_of(order.more_addresses)},
                       {"port", int{order.port}},
                       {"token", order.token},
                       {"host", order.host},
                       {"job_folder", text_of_bytes(order.job_folder)},
                       {"tree", order.tree},
                       {"term", order.term}});
}

AgentOrder agent_order_from_json(const Json& json) {
  return {json.at("address").as_string(),
          texts_of(json.at("more_addresses")),
          static_cast<std::uint16_t>(json.at("port").as_integer()),
          json.at("token").as_string(),
          json.at("host").as_string(),
          bytes_of_text(json.at("job_folder").as_string()),
          json.at("tree").as_string(),
          static_cast<Term>(json.at("term").as_integer())};
}

Json to_json(const CoordinatorOrder& order) {
  return Json::object({{"mandate", to_json(order.election)},
                       {"token", order.token},
                       {"job_folder", text_of_bytes(order.job_folder)},
                       {"address", order.address},
                       {"document", order.document}});
}

CoordinatorOrder coordinator_order_from_json(const Json& json) {
  return {election_result_from_json(json.at("mandate")), json.at("token").as_string(),
          bytes_of_text(json.at("job_folder").as_string()), json.at("address").as_string(), json.at("document")};
}

std::string coordinator_mark(const AgentOrder& order) {
  return std::string(kCoordinatorVariable) + "=" + order.tree + ".";
}

std::string tree_mark(const AgentOrder& order) { return "DTRAIN_TREE=" + order.tree + "."; }

}  // namespace dtrain::elastic
