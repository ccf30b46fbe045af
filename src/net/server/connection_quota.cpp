#include <dtrain/net/connection_quota.hpp>

#include <algorithm>
#include <map>
#include <tuple>

namespace dtrain::net {

bool ConnectionQuota::may_go(const Entry& entry, Time now) const {
  return entry.silent || now - entry.since >= limits_.grace;
}

bool ConnectionQuota::is_full(Time now) const {
  return entries_.size() >= limits_.most &&
         std::ranges::none_of(entries_, [&](const Entry& entry) { return may_go(entry, now); });
}

// The first in the order: silent before others, then the address with the most connections, then the oldest.
ConnectionQuota::Entries::iterator ConnectionQuota::choose(const std::string& address, Time now) {
  std::map<std::string, std::size_t> counts;
  for (const Entry& entry : entries_) ++counts[entry.address];
  const auto rank = [&](const Entry& entry) { return std::tuple(entry.silent, counts[entry.address]); };
  auto chosen = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if ((!address.empty() && entry->address != address) || !may_go(*entry, now)) continue;
    if (chosen == entries_.end() || rank(*entry) > rank(*chosen)) chosen = entry;
  }
  return chosen;
}

ConnectionQuota::Decision ConnectionQuota::add(Id id, const std::string& address, Time now) {
  Decision decision;
  const auto same = [&](const Entry& entry) { return entry.address == address; };
  const bool address_is_full =
      static_cast<std::size_t>(std::ranges::count_if(entries_, same)) >= limits_.most_of_address;
  if (address_is_full || entries_.size() >= limits_.most) {
    const auto goes = choose(address_is_full ? address : std::string(), now);
    if (goes == entries_.end()) return {.admitted = false};
    decision.displaced = goes->id;
    entries_.erase(goes);
  }
  entries_.push_back({.id = id, .address = address, .since = now});
  return decision;
}

void ConnectionQuota::spoke(Id id, Time now) {
  for (Entry& entry : entries_) {
    if (entry.id == id && entry.silent) entry.silent = false, entry.since = now;
  }
}

void ConnectionQuota::remove(Id id) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.id == id; });
}

}  // namespace dtrain::net
