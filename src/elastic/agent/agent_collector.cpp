#include "agent_collector.hpp"

#include <algorithm>
#include <utility>

namespace dtrain::elastic {
namespace {

constexpr int kRounds = 3;

std::set<std::string> hosts_of(const ElectionResult& election) {
  std::set<std::string> hosts;
  for (const VoterSet& voter_set : election.voter_sets) {
    for (const Voter& agent : voter_set.voters) hosts.insert(agent.host);
  }
  return hosts;
}

}  // namespace

AgentCollector::AgentCollector(net::Loop& loop, const ElectionResult& election, CollectTimes times,
                               std::function<void()> complete, Done done)
    : loop_(loop),
      times_(times),
      voters_(hosts_of(election)),
      awaited_(voters_),
      alive_(election.granted_by),
      complete_(std::move(complete)),
      done_(std::move(done)) {}

void AgentCollector::start() { check(kRounds); }

void AgentCollector::take(HostReport report) {
  ++taken_;
  awaited_.erase(report.host);
  reports_.push_back(std::move(report));
  if (awaited_.empty()) return complete();
  check_quiet();
}

void AgentCollector::drop(const std::string& host) {
  std::erase_if(reports_, [&](const HostReport& report) { return report.host == host; });
  if (voters_.contains(host)) awaited_.insert(host);
}

void AgentCollector::end(const std::function<void(AgentPoolEvent)>& on_event) {
  complete_ = nullptr;
  done_(std::move(reports_));
  for (AgentPoolEvent& event : early_) on_event(std::move(event));
}

// Workers of agents that come later are lost, so the coordinator waits for at least half of the agents.
void AgentCollector::check(int rounds) {
  loop_.after(times_.wait, [weak = weak_from_this(), rounds] {
    const auto self = weak.lock();
    if (!self) return;
    if (!self->has_half() && rounds > 1) return self->check(rounds - 1);
    self->complete();
  });
}

// Completes the collection unless another agent has come since.
void AgentCollector::check_quiet() {
  loop_.after(times_.quiet, [weak = weak_from_this(), taken = taken_] {
    const auto self = weak.lock();
    if (self && self->taken_ == taken && self->has_half() && self->has_all_alive()) self->complete();
  });
}

bool AgentCollector::has_all_alive() const {
  return std::ranges::none_of(alive_, [&](const std::string& host) { return awaited_.contains(host); });
}

void AgentCollector::complete() {
  if (const auto complete = std::exchange(complete_, nullptr)) complete();
}

}  // namespace dtrain::elastic
