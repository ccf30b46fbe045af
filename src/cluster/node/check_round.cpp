#include "check_round.hpp"

#include <dtrain/cluster/checkup.hpp>

namespace dtrain::cluster {

void CheckRound::hear(const std::string& instance_id, const Json& message, std::int64_t now) {
  const auto asked = waiting_.find(instance_id);
  if (asked == waiting_.end()) return;
  const ClockOffset offset =
      clock_offset(asked->second, now, message.at("time_ns").as_integer(), message.at("took_ns").as_integer());
  reports_[instance_id] = Json::object({{"report", message.at("report")},
                                        {"clock_offset_seconds", offset.seconds},
                                        {"clock_within_seconds", offset.within}});
  waiting_.erase(asked);
}

}  // namespace dtrain::cluster
