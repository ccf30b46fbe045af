#include "elect.hpp"

namespace dtrain::elastic {

Json to_json(const Vote& vote) {
  Json json = Json::object({{"voter", to_json(vote.voter)},
                            {"granted", vote.granted},
                            {"term", vote.term},
                            {"circles", to_json(vote.circles)}});
  if (vote.leader) json["leader"] = to_json(*vote.leader);
  return json;
}

Vote vote_from_json(const Json& json) {
  Vote vote{.voter = circle_agent_from_json(json.at("voter")),
            .granted = json.at("granted").as_bool(),
            .term = static_cast<Term>(json.at("term").as_integer()),
            .leader = {},
            .circles = circles_from_json(json.at("circles"))};
  if (const Json* leader = json.find("leader")) vote.leader = leader_from_json(*leader);
  return vote;
}

}  // namespace dtrain::elastic
