#include "pending_requests.hpp"

#include <algorithm>

namespace dtrain::elastic {
namespace {

constexpr std::int64_t kFirstList = 1;

// The list with which a job begins names all of its hosts; what an earlier run in the same folder listed is over.
bool begins_a_job(const Json& hosts_event) {
  const Json* list = hosts_event.find("list");
  return list != nullptr && list->as_integer() == kFirstList;
}

void take_list(const Json& event, PendingRequests& pending_requests) {
  auto& [drained, noticed, stop, listed, unlisted] = pending_requests;
  // A stopping job ignores its host list, so this event belongs to a job that was begun again.
  stop.reset();
  if (begins_a_job(event)) {
    listed.clear();
    unlisted.clear();
  }
  for (const Json& host : event.at("removed").as_array()) {
    drained.erase(host.as_string());
    noticed.erase(host.as_string());
    std::erase(listed, host.as_string());
    unlisted.insert(host.as_string());
  }
  for (const Json& host : event.at("added").as_array()) {
    drained.erase(host.as_string());
    noticed.erase(host.as_string());
    if (std::ranges::find(listed, host.as_string()) == listed.end()) listed.push_back(host.as_string());
    unlisted.erase(host.as_string());
  }
}

PendingStop stop_in(const Json& event, bool at_once) {
  PendingStop stop{.reason = event.at("reason").as_string(), .at_once = at_once};
  const Json* exit_code = event.find("exit_code");  // older versions wrote none
  if (exit_code) stop.exit_code = static_cast<ExitCode>(exit_code->as_integer());
  return stop;
}

void take(const Json& event, PendingRequests& pending_requests) {
  const std::string& kind = event.at("event").as_string();
  if (kind == "drain") pending_requests.drained[event.at("host").as_string()] = event.at("reason").as_string();
  if (kind == "notice" && event.at("leave").as_bool()) pending_requests.noticed.insert(event.at("host").as_string());
  if (kind == "stop" || kind == "end_at_once") pending_requests.stop = stop_in(event, kind == "end_at_once");
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
