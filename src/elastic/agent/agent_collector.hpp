// Collects the agents that return to a coordinator that takes over, until it begins: when all voters have come; when
// those that voted for it and at least half have come, and no other for a while; after a wait if half of them have;
// and in any case after three such waits.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <dtrain/elastic/network_agent_pool.hpp>
#include <dtrain/net/channel.hpp>

namespace dtrain::elastic {

// On the loop's thread. After its end, or when it is destroyed, its timers do nothing.
class AgentCollector : public std::enable_shared_from_this<AgentCollector> {
 public:
  using Done = std::function<void(std::vector<HostReport>)>;

  // Awaits the voters of `election`. `complete` is called once, when the coordinator shall begin: call end() then.
  AgentCollector(net::Loop& loop, const ElectionResult& election, CollectTimes times, std::function<void()> complete,
                 Done done);
  void start();

  void take(HostReport report);
  // The agent's connection is lost. Its report is outdated: it may connect again, and is awaited again.
  void drop(const std::string& host);
  void keep_for_later(AgentPoolEvent event) { early_.push_back(std::move(event)); }

  // Lets the coordinator begin, then feeds it the events that came meanwhile.
  void end(const std::function<void(AgentPoolEvent)>& on_event);

 private:
  void check(int rounds);
  void check_quiet();
  bool has_half() const { return 2 * awaited_.size() <= voters_.size(); }
  bool has_all_alive() const;
  void complete();

  net::Loop& loop_;
  const CollectTimes times_;
  const std::set<std::string> voters_;    // hosts
  std::set<std::string> awaited_;         // those of them that have not come
  const std::vector<std::string> alive_;  // those that voted
  std::function<void()> complete_;        // empty once called
  const Done done_;
  int taken_ = 0;  // reports
  std::vector<HostReport> reports_;
  std::vector<AgentPoolEvent> early_;
};

}  // namespace dtrain::elastic
