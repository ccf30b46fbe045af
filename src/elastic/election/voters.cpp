#include <dtrain/elastic/voters.hpp>

#include <fmt/format.h>

#include <utility>

#include <dtrain/base/error.hpp>

#include "elect.hpp"

namespace dtrain::elastic {

Json to_json(const Voter& agent) {
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

Voter voter_from_json(const Json& json) {
  return {.host = json.at("host").as_string(), .tree = json.at("tree").as_string(), .address = address_from_json(json)};
}

namespace {

std::optional<VoterSet> optional_voter_set(const Json& json, std::string_view key) {
  const Json* voter_set = json.find(key);
  return voter_set ? std::optional(voter_set_from_json(*voter_set)) : std::nullopt;
}

bool is_newer(const VoterSet& voter_set, const std::optional<VoterSet>& known) {
  return !known || voter_set.generation > known->generation;
}

}  // namespace

void learn(KnownVoters& voters, const VoterNotice& notice) {
  const VoterSet& voter_set = notice.voter_set;
  if (!is_newer(voter_set, voters.committed)) return;
  if (!notice.committed) {
    if (is_newer(voter_set, voters.prepared)) voters.prepared = voter_set;
    return;
  }
  voters.committed = voter_set;
  if (voters.prepared && !is_newer(*voters.prepared, voters.committed)) voters.prepared.reset();
}

Quorum quorum_of(std::size_t part, std::size_t whole) {
  if (2 * part > whole) return Quorum::majority;
  return 2 * part == whole && part > 0 ? Quorum::half : Quorum::none;
}

// Members travel as in a Prepare.
Json to_json(const VoterSet& voter_set) {
  Json agents = Json::array();
  for (const Voter& agent : voter_set.voters) agents.push_back(to_json(agent));
  return Json::object(
      {{"agents", std::move(agents)}, {"roster", to_json(ToWorker(Prepare{voter_set.generation, voter_set.members}))}});
}

VoterSet voter_set_from_json(const Json& json) {
  ToWorker prepare_message = to_worker_from_json(json.at("roster"));
  Prepare* prepare = std::get_if<Prepare>(&prepare_message);
  if (!prepare) throw DataError("a set of voters has no list of members");
  VoterSet voter_set{.generation = prepare->generation, .voters = {}, .members = std::move(prepare->members)};
  for (const Json& agent : json.at("agents").as_array()) voter_set.voters.push_back(voter_from_json(agent));
  return voter_set;
}

Json to_json(const KnownVoters& voters) {
  Json json = Json::object({});
  if (voters.committed) json["committed"] = to_json(*voters.committed);
  if (voters.prepared) json["prepared"] = to_json(*voters.prepared);
  return json;
}

KnownVoters known_voters_from_json(const Json& json) {
  return {.committed = optional_voter_set(json, "committed"), .prepared = optional_voter_set(json, "prepared")};
}

Json to_json(const VoterNotice& notice) {
  return Json::object({{"committed", notice.committed}, {"circle", to_json(notice.voter_set)}});
}

VoterNotice voter_notice_from_json(const Json& json) {
  return {.committed = json.at("committed").as_bool(), .voter_set = voter_set_from_json(json.at("circle"))};
}

Json to_json(const Leader& leader) {
  return Json::object({{"term", leader.term}, {"address", leader.address.address}, {"port", int{leader.address.port}}});
}

Leader leader_from_json(const Json& json) {
  return {.term = static_cast<Term>(json.at("term").as_integer()), .address = address_from_json(json)};
}

Json to_json(const ElectionResult& election) {
  Json voter_sets = Json::array(), tiebreakers = Json::array(), granted_by = Json::array();
  for (const VoterSet& voter_set : election.voter_sets) voter_sets.push_back(to_json(voter_set));
  for (const Generation generation : election.tiebreakers) tiebreakers.push_back(generation);
  for (const std::string& host : election.granted_by) granted_by.push_back(host);
  return Json::object({{"term", election.term},
                       {"circles", std::move(voter_sets)},
                       {"claimed", std::move(tiebreakers)},
                       {"granted_by", std::move(granted_by)}});
}

ElectionResult election_result_from_json(const Json& json) {
  ElectionResult election{
      .term = static_cast<Term>(json.at("term").as_integer()), .voter_sets = {}, .tiebreakers = {}, .granted_by = {}};
  for (const Json& voter_set : json.at("circles").as_array())
    election.voter_sets.push_back(voter_set_from_json(voter_set));
  for (const Json& generation : json.at("claimed").as_array()) {
    election.tiebreakers.push_back(static_cast<Generation>(generation.as_integer()));
  }
  for (const Json& host : json.at("granted_by").as_array()) election.granted_by.push_back(host.as_string());
  return election;
}

// More than a host file can name, and few enough for an array of them.
int slot_of(std::int64_t number) {
  constexpr std::int64_t kLastSlot = 1'000'000;
  if (number < 0 || number > kLastSlot) throw DataError(fmt::format("{} is no slot: 0 to {}", number, kLastSlot));
  return static_cast<int>(number);
}

Json to_json(const std::vector<WorkerReport>& workers) {
  Json json = Json::array();
  for (const WorkerReport& report : workers) {
    Json said = Json::array();
    for (const FromWorker& message : report.said) said.push_back(to_json(message));
    json.push_back(Json::object({{"worker", report.worker},
                                 {"slot", report.slot},
                                 {"silence_ms", report.silence.count()},
                                 {"said", std::move(said)}}));
  }
  return json;
}

std::vector<WorkerReport> worker_reports_from_json(const Json& json) {
  std::vector<WorkerReport> workers;
  for (const Json& report : json.as_array()) {
    WorkerReport& worker = workers.emplace_back();
    worker.worker = static_cast<WorkerId>(report.at("worker").as_integer());
    worker.slot = slot_of(report.at("slot").as_integer());
    worker.silence = std::chrono::milliseconds(report.at("silence_ms").as_integer());
    for (const Json& message : report.at("said").as_array()) worker.said.push_back(from_worker_from_json(message));
  }
  return workers;
}

Json to_json(const Vote& vote) {
  Json json = Json::object({{"voter", to_json(vote.voter)},
                            {"granted", vote.granted},
                            {"term", vote.term},
                            {"circles", to_json(vote.voters)}});
  if (vote.leader) json["leader"] = to_json(*vote.leader);
  return json;
}

Vote vote_from_json(const Json& json) {
  Vote vote{.voter = voter_from_json(json.at("voter")),
            .granted = json.at("granted").as_bool(),
            .term = static_cast<Term>(json.at("term").as_integer()),
            .leader = {},
            .voters = known_voters_from_json(json.at("circles"))};
  if (const Json* leader = json.find("leader")) vote.leader = leader_from_json(*leader);
  return vote;
}

}  // namespace dtrain::elastic
