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
    give_up(host, {reason->as_string(), request.body.find_text("forget_key")});
    request.answer(Json::object({{"ok", true}}));
    return true;
  }
  offers_[host] = {.answer = request.answer, .until = now + kOfferTime};
  request.answer = [this, host, answer = request.answer](Json edited) {
    if (edited.find("error")) {
      offers_.erase(host);
      return answer(std::move(edited));
    }
    if (const auto offer = offers_.find(host); offer != offers_.end()) offer->second.edited = std::move(edited);
    answer_once_complete(host);
  };
  return false;
}

void ClientSideStarts::answer_once_complete(const std::string& host) {
  const auto found = offers_.find(host);
  if (found == offers_.end() || !found->second.edited || !found->second.join) return;
  Offer offer = std::move(found->second);
  offers_.erase(found);
  (*offer.edited)["join"] = std::move(*offer.join);
  offer.answer(std::move(*offer.edited));
}

void ClientSideStarts::give_up(const std::string& host, const elastic::StartFailure& failure) {
  const auto found = pending_.find(host);
  if (found == pending_.end()) return;
  const Failed failed = std::move(found->second.failed);
  pending_.erase(found);
  failed(failure);
}

void ClientSideStarts::tick(std::chrono::steady_clock::time_point now) {
  std::erase_if(offers_, [&](const auto& entry) {
    const Offer& offer = entry.second;
    if (offer.until >= now) return false;
    offer.answer(offer.edited.value_or(Json::object({{"ok", true}})));
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
  const auto offer = offers_.find(host.name);
  if (offer == offers_.end()) return launcher_.start(host, join, std::move(failed));
  pending_[host.name] = {std::move(failed), std::chrono::steady_clock::now() + kStartTime};
  offer->second.join = elastic::to_json(launcher::with_own_addresses(join, announce_));
  answer_once_complete(host.name);
}

}  // namespace dtrain::job
