#include "pending_requests.hpp"

#include <dtrain/base/error.hpp>

namespace dtrain::elastic {
namespace {

void take(const Json& event, PendingRequests& pending_requests) {
  const std::string& kind = event.at("event").as_string();
  if (kind == "drain") pending_requests.drained[event.at("host").as_string()] = event.at("reason").as_string();
  if (kind == "stop") pending_requests.stop = event.at("reason").as_string();
  if (kind == "finish") pending_requests = {};
  if (kind != "hosts") return;
  // A stopping job ignores its host list, so this event belongs to a job that was begun again.
  pending_requests.stop.reset();
  for (const char* change : {"added", "removed"}) {
    for (const Json& host : event.at(change).as_array()) pending_requests.drained.erase(host.as_string());
  }
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
