#include "client_side_starts.hpp"

#include <utility>
#include <vector>

#include <dtrain/elastic/agent.hpp>
#include <dtrain/launcher/starter_launcher.hpp>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
// From the offer to the start it is for: the client adds the host next.
constexpr auto kOfferTime = 5s;
// From the start to the agent's joining: the client may have to copy the program.
constexpr auto kStartTime = 300s;

}  // namespace

bool ClientSideStarts::hear(elastic::Request& request, std::chrono::steady_clock::time_point now) {
  const Json* start = request.body.find("start");
  const Json* reason = request.body.find("reason");
  if (!start || !start->is_string()) return false;
  const std::string host = start->as_string();
  if (reason && reason->is_string()) {
    give_up(host, reason->as_string());
    request.answer(Json::object({{"ok", true}}));
    return true;
  }
  offers_[host] = {request.answer, now + kOfferTime};
  request.answer = [this, host, answer = request.answer](Json edited) {
    if (!edited.find("error")) return;
    offers_.erase(host);
    answer(std::move(edited));
  };
  return false;
}

void ClientSideStarts::give_up(const std::string& host, const std::string& reason) {
  const auto found = pending_.find(host);
  if (found == pending_.end()) return;
  const Failed failed = std::move(found->second.failed);
  pending_.erase(found);
  failed(reason);
}

void ClientSideStarts::tick(std::chrono::steady_clock::time_point now) {
  std::erase_if(offers_, [&](const auto& entry) {
    if (entry.second.until >= now) return false;
    entry.second.answer(Json::object({{"ok", true}}));
    return true;
  });
  std::vector<std::string> late;
  for (const auto& [host, start] : pending_) {
    if (start.until < now) late.push_back(host);
  }
  for (const std::string& host : late) give_up(host, "the client that offered to start its agent did not");
}

void ClientSideStarts::start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) {
  pending_.erase(host.name);
  const auto offer = offers_.extract(host.name);
  if (!offer) return launcher_.start(host, join, std::move(failed));
  const elastic::AgentOrder mine = launcher::with_own_addresses(join, announce_);
  pending_[host.name] = {std::move(failed), std::chrono::steady_clock::now() + kStartTime};
  offer.mapped().answer(Json::object({{"join", elastic::to_json(mine)}}));
}

}  // namespace dtrain::job
