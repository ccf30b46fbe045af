#include "machines.hpp"

#include <map>

#include "explain.hpp"

namespace dtrain::board {
namespace {

// One host of one job, brought up to date event by event.
void take(std::map<std::string, Json>& hosts, const Json& event) {
  const std::string kind = member_text(event, "event"), name = member_text(event, "host");
  if (name.empty()) return;
  Json& host = hosts[name];
  host["at"] = plot::parse_time(member_text(event, "time")).value_or(0);
  if (kind == "host_starting") host["state"] = "starting";
  if (kind == "host_up") {
    host["state"] = "up";
    host["address"] = member_text(event, "address");
  }
  if (kind == "preparing") host["state"] = "preparing";
  if (kind == "added") host["state"] = "training";
  if (kind == "spare") host["state"] = "spare";
  if (kind == "drain") host["state"] = "draining";
  if (kind == "removed") host["state"] = "removed";
  if (kind == "host_down") host["state"] = "down";
  if (kind == "failed") host["failures"] = member_number(host, "failures") + 1;
  const Json* const health = event.find("health");
  if (kind != "prepared" || !health || !health->is_object()) return;
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
