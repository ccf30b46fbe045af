// The agents that come back to a coordinator that takes over, until it begins.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dtrain/elastic/crew.hpp>

namespace dtrain::elastic {

class Gathering {
 public:
  using Done = std::function<void(std::vector<HostReport>)>;

  Gathering(std::set<std::string> awaited, Done done)
      : expected_(awaited.size()), awaited_(std::move(awaited)), done_(std::move(done)) {}

  void take(HostReport report) {
    awaited_.erase(report.host);
    reports_.push_back(std::move(report));
  }
  // It connects again: what it said is old.
  void drop(const std::string& host) {
    std::erase_if(reports_, [&](const HostReport& report) { return report.host == host; });
  }
  void keep_for_later(CrewEvent event) { early_.push_back(std::move(event)); }
  bool is_complete() const { return awaited_.empty(); }
  // Whoever comes later starts anew, so it pays to wait for half of them.
  bool has_half() const { return 2 * awaited_.size() <= expected_; }

  // The coordinator begins, and hears what happened meanwhile.
  void end(const std::function<void(CrewEvent)>& on_event) {
    done_(std::move(reports_));
    for (CrewEvent& event : early_) on_event(std::move(event));
  }

 private:
  const std::size_t expected_;
  std::set<std::string> awaited_;  // hosts
  const Done done_;
  std::vector<HostReport> reports_;
  std::vector<CrewEvent> early_;
};

}  // namespace dtrain::elastic
