#include <dtrain/elastic/circle.hpp>

#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::elastic {

Json to_json(const CircleAgent& agent) {
  return Json::object({{"host", agent.host},
                       {"tree", agent.tree},
                       {"address", agent.address.address},
                       {"port", int{agent.address.port}}});
}

namespace {

comm::PeerAddress address_from_json(const Json& json) {
  return {json.at("address").as_string(), static_cast<std::uint16_t>(json.at("port").as_integer())};
}

}  // namespace

CircleAgent circle_agent_from_json(const Json& json) {
  return {.host = json.at("host").as_string(), .tree = json.at("tree").as_string(), .address = address_from_json(json)};
}

namespace {

std::optional<Circle> optional_circle(const Json& json, std::string_view key) {
  const Json* circle = json.find(key);
  return circle ? std::optional(circle_from_json(*circle)) : std::nullopt;
}

bool is_newer(const Circle& circle, const std::optional<Circle>& known) {
  return !known || circle.generation > known->generation;
}

}  // namespace

void learn(Circles& circles, const CircleNotice& notice) {
  const Circle& circle = notice.circle;
  if (!is_newer(circle, circles.committed)) return;
  if (!notice.committed) {
    if (is_newer(circle, circles.prepared)) circles.prepared = circle;
    return;
  }
  circles.committed = circle;
  if (circles.prepared && !is_newer(*circles.prepared, circles.committed)) circles.prepared.reset();
}

Share share_of(std::size_t part, std::size_t whole) {
  if (2 * part > whole) return Share::majority;
  return 2 * part == whole && part > 0 ? Share::half : Share::minority;
}

// Members travel as they do in a Prepare.
Json to_json(const Circle& circle) {
  Json agents = Json::array();
  for (const CircleAgent& agent : circle.agents) agents.push_back(to_json(agent));
  return Json::object(
      {{"agents", std::move(agents)}, {"roster", to_json(ToWorker(Prepare{circle.generation, circle.members}))}});
}

Circle circle_from_json(const Json& json) {
  ToWorker roster = to_worker_from_json(json.at("roster"));
  Prepare* prepare = std::get_if<Prepare>(&roster);
  if (!prepare) throw DataError("a circle of agents has no list of members");
  Circle circle{.generation = prepare->generation, .agents = {}, .members = std::move(prepare->members)};
  for (const Json& agent : json.at("agents").as_array()) circle.agents.push_back(circle_agent_from_json(agent));
  return circle;
}

Json to_json(const Circles& circles) {
  Json json = Json::object({});
  if (circles.committed) json["committed"] = to_json(*circles.committed);
  if (circles.prepared) json["prepared"] = to_json(*circles.prepared);
  return json;
}

Circles circles_from_json(const Json& json) {
  return {.committed = optional_circle(json, "committed"), .prepared = optional_circle(json, "prepared")};
}

Json to_json(const CircleNotice& notice) {
  return Json::object({{"committed", notice.committed}, {"circle", to_json(notice.circle)}});
}

CircleNotice circle_notice_from_json(const Json& json) {
  return {.committed = json.at("committed").as_bool(), .circle = circle_from_json(json.at("circle"))};
}

Json to_json(const Leader& leader) {
  return Json::object({{"term", leader.term}, {"address", leader.address.address}, {"port", int{leader.address.port}}});
}

Leader leader_from_json(const Json& json) {
  return {.term = static_cast<Term>(json.at("term").as_integer()), .address = address_from_json(json)};
}

Json to_json(const Mandate& mandate) {
  Json circles = Json::array(), claimed = Json::array();
  for (const Circle& circle : mandate.circles) circles.push_back(to_json(circle));
  for (const Generation generation : mandate.claimed) claimed.push_back(generation);
  return Json::object({{"term", mandate.term}, {"circles", std::move(circles)}, {"claimed", std::move(claimed)}});
}

Mandate mandate_from_json(const Json& json) {
  Mandate mandate{.term = static_cast<Term>(json.at("term").as_integer()), .circles = {}, .claimed = {}};
  for (const Json& circle : json.at("circles").as_array()) mandate.circles.push_back(circle_from_json(circle));
  for (const Json& generation : json.at("claimed").as_array()) {
    mandate.claimed.push_back(static_cast<Generation>(generation.as_integer()));
  }
  return mandate;
}

Json to_json(const std::vector<WorkerReport>& workers) {
  Json json = Json::array();
  for (const WorkerReport& report : workers) {
    Json said = Json::array();
    for (const FromWorker& message : report.said) said.push_back(to_json(message));
    json.push_back(Json::object({{"worker", report.worker}, {"slot", report.slot}, {"said", std::move(said)}}));
  }
  return json;
}

std::vector<WorkerReport> worker_reports_from_json(const Json& json) {
  std::vector<WorkerReport> workers;
  for (const Json& report : json.as_array()) {
    WorkerReport& worker = workers.emplace_back();
    worker.worker = static_cast<WorkerId>(report.at("worker").as_integer());
    worker.slot = static_cast<int>(report.at("slot").as_integer());
    for (const Json& message : report.at("said").as_array()) worker.said.push_back(from_worker_from_json(message));
  }
  return workers;
}

}  // namespace dtrain::elastic
