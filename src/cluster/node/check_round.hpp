// One round of the head's question to all nodes how they are: who has not answered yet, and what the others said.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <dtrain/base/json.hpp>

namespace dtrain::cluster {

// Pure: times are given.
class CheckRound {
 public:
  // Wall clock, nanoseconds.
  void ask(const std::string& instance_id, std::int64_t now) { waiting_[instance_id] = now; }
  // {"time_ns": its clock when it was asked, "took_ns", "report"}. Throws DataError.
  void hear(const std::string& instance_id, const Json& message, std::int64_t now);
  bool is_over() const { return waiting_.empty(); }
  // {instance id: {"report", "clock_offset_seconds", "clock_within_seconds"}} of those that answered.
  const Json& reports() const { return reports_; }

 private:
  std::map<std::string, std::int64_t> waiting_;
  Json reports_ = Json::object();
};

}  // namespace dtrain::cluster
