#include "machines.hpp"

#include <map>
#include <optional>

#include <dtrain/base/event_kind.hpp>

#include "explain.hpp"

namespace dtrain::board {
namespace {

// The state of a host after an event of this kind; null: the kind does not change it.
const char* state_after(EventKind kind) {
  switch (kind) {
    case EventKind::host_starting:
      return "starting";
    case EventKind::host_up:
      return "up";
    case EventKind::preparing:
      return "preparing";
    case EventKind::added:
      return "training";
    case EventKind::spare:
      return "spare";
    case EventKind::drain:
      return "draining";
    case EventKind::removed:
      return "removed";
    case EventKind::host_down:
      return "down";
    default:
      return nullptr;
  }
}

// One host of one job, brought up to date event by event.
void take(std::map<std::string, Json>& hosts, const Json& event) {
  const std::optional<EventKind> kind = event_kind(event);
  const std::string name = member_text(event, "host");
  if (name.empty()) return;
  Json& host = hosts[name];
  host["at"] = plot::parse_time(member_text(event, "time")).value_or(0);
  if (!kind) return;
  if (const char* const state = state_after(*kind)) host["state"] = state;
  if (kind == EventKind::host_up) host["address"] = member_text(event, "address");
  if (kind == EventKind::failed) host["failures"] = member_number(host, "failures") + 1;
  const Json* const health = event.find("health");
  if (kind != EventKind::prepared || !health || !health->is_object()) return;
  for (const auto& [from, to] :
       {std::pair{"memory_free_bytes", "memory_free_bytes"}, std::pair{"disk_free_bytes", "disk_free_bytes"},
        std::pair{"bandwidth_bytes_per_second", "bandwidth"}, std::pair{"clock_offset_seconds", "clock_offset"}})
    if (const Json* value = health->find(from)) host[to] = *value;
}

}  // namespace

Json machines_of(const Catalog& catalog) {
  Json list = Json::array();
  double worker_seconds = 0;
  const Json rows = catalog.rows();
  for (const Json& row : rows.as_array()) {
    worker_seconds += member_number(row, "worker_seconds");
    if (member_text(row, "kind") != "job") continue;
    std::map<std::string, Json> hosts;
    catalog.with_run(member_text(row, "id"), [&](const Run& run) {
      for (const Json& event : run.events()) take(hosts, event);
    });
    for (auto& [name, host] : hosts) {
      Json whole = Json::object({{"host", name},
                                 {"run", member_text(row, "id")},
                                 {"job", member_text(row, "name")},
                                 {"state", "unknown"},
                                 {"failures", 0}});
      for (const auto& [key, value] : host.as_object()) whole[key] = value;
      list.push_back(std::move(whole));
    }
  }
  return Json::object({{"hosts", list}, {"worker_seconds", worker_seconds}});
}

}  // namespace dtrain::board
