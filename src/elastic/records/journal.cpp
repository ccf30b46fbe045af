#include <algorithm>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/records.hpp>

namespace dtrain::elastic {
namespace {

Json to_json(const Member& member) {
  return Json::object({{"worker", member.worker},
                       {"host", member.host},
                       {"slot", member.slot},
                       {"address", member.data.address},
                       {"port", int{member.data.port}}});
}

Member member_from_json(const Json& json) {
  return {.worker = static_cast<WorkerId>(json.at("worker").as_integer()),
          .host = json.at("host").as_string(),
          .slot = static_cast<int>(json.at("slot").as_integer()),
          .data = {json.at("address").as_string(), static_cast<std::uint16_t>(json.at("port").as_integer())}};
}

Json to_json(const JournalEntry& entry, Term term) {
  Json json = Json::object({{"term", term},
                            {"generation", entry.generation},
                            {"state", entry.committed ? "committed" : "begun"},
                            {"next_worker", entry.next_worker}});
  if (entry.committed) {
    Json members = Json::array();
    for (const Member& member : entry.members) members.push_back(to_json(member));
    json["members"] = std::move(members);
  }
  return json;
}

JournalEntry entry_from_json(const Json& json) {
  JournalEntry entry{.generation = static_cast<Generation>(json.at("generation").as_integer()),
                     .committed = json.at("state").as_string() == "committed",
                     .next_worker = static_cast<WorkerId>(json.at("next_worker").as_integer()),
                     .members = {}};
  if (!entry.committed) return entry;
  for (const Json& member : json.at("members").as_array()) entry.members.push_back(member_from_json(member));
  return entry;
}

}  // namespace

GenerationJournal::GenerationJournal(Path path) : file_(std::move(path)) {
  for (const Json& line : read_events(file_.path())) {
    try {
      const Json* term = line.find("term");
      const auto of_term = term ? static_cast<Term>(term->as_integer()) : Term{0};
      if (of_term < term_) continue;
      term_ = of_term;
      if (!line.find("generation")) continue;
      JournalEntry entry = entry_from_json(line);
      next_generation_ = std::max(next_generation_, entry.generation + 1);
      next_worker_ = std::max(next_worker_, entry.next_worker);
      if (entry.committed) members_ = std::move(entry.members);
    } catch (const DataError&) {  // a damaged line
    }
  }
}

void GenerationJournal::begin_term(Term term) {
  term_ = term;
  file_.append(Json::object({{"term", term}}).dump(), true);
}

void GenerationJournal::append(const JournalEntry& entry) {
  file_.append(to_json(entry, term_).dump(), entry.committed);
  next_generation_ = std::max(next_generation_, entry.generation + 1);
  next_worker_ = std::max(next_worker_, entry.next_worker);
  if (entry.committed) members_ = entry.members;
}

}  // namespace dtrain::elastic
