// What people and notices asked of a job that its next coordinator must know: it is in the events, and nowhere else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>

namespace dtrain::elastic {

struct Orders {
  std::map<std::string, std::string> drained;  // hosts that are to stay out, with the reason
  std::optional<std::string> stop;             // the job is to end, with the reason
};

// Those in force after these events of the job (read_events() of elastic/records.hpp). A host that is listed again, and
// a job that is begun again, start afresh.
Orders orders_in(const std::vector<Json>& events);

}  // namespace dtrain::elastic
