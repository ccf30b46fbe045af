#include <dtrain/elastic/orders.hpp>

#include <dtrain/base/error.hpp>

namespace dtrain::elastic {
namespace {

void take(const Json& event, Orders& orders) {
  const std::string& kind = event.at("event").as_string();
  if (kind == "drain") orders.drained[event.at("host").as_string()] = event.at("reason").as_string();
  if (kind == "stop") orders.stop = event.at("reason").as_string();
  if (kind == "finish") orders = {};
  if (kind != "hosts") return;
  // While a job stops its host list is not heeded: this one is of a job that was begun again.
  orders.stop.reset();
  for (const char* change : {"added", "removed"}) {
    for (const Json& host : event.at(change).as_array()) orders.drained.erase(host.as_string());
  }
}

}  // namespace

Orders orders_in(const std::vector<Json>& events) {
  Orders orders;
  for (const Json& event : events) {
    try {
      take(event, orders);
    } catch (const DataError&) {  // a line that was damaged
    }
  }
  return orders;
}

}  // namespace dtrain::elastic
