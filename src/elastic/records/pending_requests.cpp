#include "pending_requests.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::elastic {
namespace {

constexpr std::int64_t kFirstList = 1;

// The list with which a job begins names all of its hosts; what an earlier run in the same folder listed is over.
bool begins_a_job(const Json& hosts_event) {
  const Json* list = hosts_event.find("list");
  return list != nullptr && list->as_integer() == kFirstList;
}

void take_list(const Json& event, PendingRequests& pending_requests) {
  auto& [drained, stop, listed, unlisted] = pending_requests;
  // A stopping job ignores its host list, so this event belongs to a job that was begun again.
  stop.reset();
  if (begins_a_job(event)) {
    listed.clear();
    unlisted.clear();
  }
  for (const Json& host : event.at("removed").as_array()) {
    drained.erase(host.as_string());
    std::erase(listed, host.as_string());
    unlisted.insert(host.as_string());
  }
  for (const Json& host : event.at("added").as_array()) {
    drained.erase(host.as_string());
    if (std::ranges::find(listed, host.as_string()) == listed.end()) listed.push_back(host.as_string());
    unlisted.erase(host.as_string());
  }
}

void take(const Json& event, PendingRequests& pending_requests) {
  const std::string& kind = event.at("event").as_string();
  if (kind == "drain") pending_requests.drained[event.at("host").as_string()] = event.at("reason").as_string();
  if (kind == "stop") pending_requests.stop = event.at("reason").as_string();
  if (kind == "finish") pending_requests = {};
  if (kind == "hosts") take_list(event, pending_requests);
}

}  // namespace

PendingRequests pending_requests_in(const std::vector<Json>& events) {
  PendingRequests pending_requests;
  for (const Json& event : events) {
    try {
      take(event, pending_requests);
    } catch (const DataError&) {  // a damaged line
    }
  }
  return pending_requests;
}

}  // namespace dtrain::elastic
