// Collects the agents that return to a coordinator that takes over, until it begins: when all voters have come, or
// those that are known to be alive and no other for a while.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dtrain/elastic/agent_pool.hpp>

namespace dtrain::elastic {

class AgentCollector {
 public:
  using Done = std::function<void(std::vector<HostReport>)>;

  AgentCollector(std::set<std::string> awaited, std::vector<std::string> alive, Done done)
      : expected_(awaited.size()), awaited_(std::move(awaited)), alive_(std::move(alive)), done_(std::move(done)) {}

  void take(HostReport report) {
    ++taken_;
    awaited_.erase(report.host);
    reports_.push_back(std::move(report));
  }
  // The agent connects again, so its report is outdated.
  void drop(const std::string& host) {
    std::erase_if(reports_, [&](const HostReport& report) { return report.host == host; });
  }
  void keep_for_later(AgentPoolEvent event) { early_.push_back(std::move(event)); }
  bool is_complete() const { return awaited_.empty(); }
  // Workers of agents that come later are lost, so the coordinator waits for at least half of the agents.
  bool has_half() const { return 2 * awaited_.size() <= expected_; }
  bool has_all_alive() const {
    return std::ranges::none_of(alive_, [&](const std::string& host) { return awaited_.contains(host); });
  }
  int taken() const { return taken_; }

  // Lets the coordinator begin, then feeds it the events that came meanwhile.
  void end(const std::function<void(AgentPoolEvent)>& on_event) {
    done_(std::move(reports_));
    for (AgentPoolEvent& event : early_) on_event(std::move(event));
  }

 private:
  const std::size_t expected_;
  std::set<std::string> awaited_;  // hosts
  const std::vector<std::string> alive_;
  int taken_ = 0;  // reports
  const Done done_;
  std::vector<HostReport> reports_;
  std::vector<AgentPoolEvent> early_;
};

}  // namespace dtrain::elastic
