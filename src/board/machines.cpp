#include "machines.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>

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

// Hosts with members train from then on; others that did have none any more.
void take_commit(std::map<std::string, Json>& hosts, const Json& event, double at) {
  const Json* const list = event.find("members");
  if (!list || !list->is_array()) return;
  std::set<std::string> members;
  for (const Json& host : list->as_array()) {
    if (host.is_string()) members.insert(host.as_string());
  }
  for (const std::string& name : members) {
    Json& host = hosts[name];
    if (member_text(host, "state") != "training") host["at"] = at;
    host["state"] = "training";
  }
  for (auto& [name, host] : hosts) {
    if (members.contains(name) || member_text(host, "state") != "training") continue;
    host["state"] = "up";
    host["at"] = at;
  }
}

// Agents end with the job, or because of it.
void take_end(std::map<std::string, Json>& hosts, double at) {
  for (auto& [name, host] : hosts) {
    if (member_text(host, "state") == "removed") continue;
    host["state"] = "job over";
    host["at"] = at;
  }
}

// The hosts of one job, brought up to date event by event.
void take(std::map<std::string, Json>& hosts, const Json& event) {
  const std::optional<EventKind> kind = event_kind(event);
  const double at = plot::parse_time(member_text(event, "time")).value_or(0);
  if (kind == EventKind::commit) return take_commit(hosts, event, at);
  if (kind == EventKind::finish) return take_end(hosts, at);
  const std::string name = member_text(event, "host");
  if (name.empty()) return;
  Json& host = hosts[name];
  host["at"] = at;
  if (!kind) return;
  // The agent of a host that was removed ends after that.
  const bool stays = kind == EventKind::host_down && member_text(host, "state") == "removed";
  if (const char* const state = stays ? nullptr : state_after(*kind)) host["state"] = state;
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
