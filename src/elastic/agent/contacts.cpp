#include "contacts.hpp"

#include <algorithm>

namespace dtrain::elastic {
namespace {

constexpr Duration kLongBeat{1'500};  // beats further apart than this: this process itself was held up
constexpr std::size_t kRemembered = 100;

}  // namespace

void Contacts::heard(const std::string& host, Time now) {
  if (const auto found = hosts_.find(host); found != hosts_.end()) found->second.heard = now;
}

std::vector<Voter> Contacts::voters_of(const std::vector<Member>& members) const {
  std::vector<Voter> agents;
  for (const Member& member : members) {
    const auto host = hosts_.find(member.host);
    const auto same = [&](const Voter& agent) { return agent.host == member.host; };
    if (host != hosts_.end() && std::ranges::none_of(agents, same)) agents.push_back(host->second.agent);
  }
  return agents;
}

std::uint64_t Contacts::beat(Time now) {
  if (last_beat_ != Time{} && now - last_beat_ > kLongBeat) floor_ = now;
  last_beat_ = now;
  sent_[next_beat_] = now;
  if (sent_.size() > kRemembered) sent_.erase(sent_.begin());
  return next_beat_++;
}

void Contacts::answered(const std::string& host, std::uint64_t beat) {
  const auto found = hosts_.find(host);
  const auto sent = sent_.find(beat);
  if (found == hosts_.end() || sent == sent_.end()) return;
  found->second.answered = std::max(found->second.answered, sent->second);
}

std::vector<std::string> Contacts::silent(Duration limit, Time now) const {
  std::vector<std::string> silent = silent_for(limit, now);
  const bool are_all = silent.size() > 1 && silent.size() == hosts_.size();
  return are_all ? silent_for(kPatienceWhenAll * limit, now) : silent;
}

std::vector<std::string> Contacts::silent_for(Duration limit, Time now) const {
  std::vector<std::string> silent;
  for (const auto& [name, host] : hosts_) {
    if (now - std::max(host.heard, floor_) >= limit) silent.push_back(name);
  }
  return silent;
}

std::size_t Contacts::answered_since(const std::vector<std::string>& hosts, Time since) const {
  return static_cast<std::size_t>(std::ranges::count_if(hosts, [&](const std::string& name) {
    const auto found = hosts_.find(name);
    return found != hosts_.end() && found->second.answered >= since;
  }));
}

}  // namespace dtrain::elastic
