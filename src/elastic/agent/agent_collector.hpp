// Collects the agents that return to a coordinator that takes over, until it begins.
#pragma once

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

  AgentCollector(std::set<std::string> awaited, Done done)
      : expected_(awaited.size()), awaited_(std::move(awaited)), done_(std::move(done)) {}

  void take(HostReport report) {
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

  // Lets the coordinator begin, then feeds it the events that came meanwhile.
  void end(const std::function<void(AgentPoolEvent)>& on_event) {
    done_(std::move(reports_));
    for (AgentPoolEvent& event : early_) on_event(std::move(event));
  }

 private:
  const std::size_t expected_;
  std::set<std::string> awaited_;  // hosts
  const Done done_;
  std::vector<HostReport> reports_;
  std::vector<AgentPoolEvent> early_;
};

}  // namespace dtrain::elastic
