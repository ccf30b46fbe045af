#include "pending_requests.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include <dtrain/base/event_kind.hpp>

namespace dtrain::elastic {
namespace {

void take_list(const Json& event, PendingRequests& pending_requests) {
  auto& [drained, noticed, stop, done, trained, listed, unlisted] = pending_requests;
  // A stopping job ignores its host list, so this event belongs to a job that was begun again.
  stop.reset();
  done.clear();
  if (begins_job(event)) {
    trained = false;
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
  // Older versions wrote neither.
  if (const Json* exit_code = event.find("exit_code")) stop.exit_code = static_cast<ExitCode>(exit_code->as_integer());
  if (const Json* save = event.find("save")) stop.save = save->as_bool();
  return stop;
}

// A kind of event that changes the pending requests.
struct Kind {
  EventKind kind;
  bool on_disk;
  void (*take)(const Json& event, PendingRequests& pending_requests);
};

void note_step(const Json&, PendingRequests& pending_requests) { pending_requests.trained = true; }

constexpr Kind kKinds[] = {
    {EventKind::hosts, true, take_list},
    {EventKind::drain, true,
     [](const Json& event, PendingRequests& pending_requests) {
       pending_requests.drained[event.at("host").as_string()] = event.at("reason").as_string();
     }},
    {EventKind::notice, true,
     [](const Json& event, PendingRequests& pending_requests) {
       if (event.at("leave").as_bool()) pending_requests.noticed.insert(event.at("host").as_string());
     }},
    {EventKind::stop, true,
     [](const Json& event, PendingRequests& pending_requests) { pending_requests.stop = stop_in(event, false); }},
    {EventKind::end_at_once, true,
     [](const Json& event, PendingRequests& pending_requests) { pending_requests.stop = stop_in(event, true); }},
    {EventKind::done, false,
     [](const Json& event, PendingRequests& pending_requests) {
       pending_requests.stop = PendingStop{.reason = kTrainingIsComplete, .exit_code = ExitCode::ok};
       pending_requests.done.insert(static_cast<WorkerId>(event.at("worker").as_integer()));
     }},
    {EventKind::added, false, note_step},
    {EventKind::generation, false, note_step},
    {EventKind::finish, true, [](const Json&, PendingRequests& pending_requests) { pending_requests = {}; }},
};

const Kind* kind_of(const Json& event) {
  const std::optional<EventKind> kind = event_kind(event);
  const auto found = std::ranges::find_if(kKinds, [&](const Kind& each) { return each.kind == kind; });
  return found == std::end(kKinds) ? nullptr : found;
}

}  // namespace

PendingRequests pending_requests_in(const std::vector<Json>& events) {
  PendingRequests pending_requests;
  for (const Json& event : events) {
    try {
      if (const Kind* kind = kind_of(event)) kind->take(event, pending_requests);
    } catch (const DataError&) {  // a damaged line
    }
  }
  return pending_requests;
}

bool must_be_on_disk(const Json& event) {
  const Kind* kind = kind_of(event);
  return kind != nullptr && kind->on_disk;
}

}  // namespace dtrain::elastic
