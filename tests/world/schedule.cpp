#include "schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dtrain::world {

using elastic::WorkerId;

void FaultPlan::set(const std::string& host, const PlannedFault& fault) {
  const std::lock_guard lock(mutex_);
  faults_[host] = fault;
}

Fault FaultPlan::fault_at(const std::string& host, Place place, int count) {
  const std::lock_guard lock(mutex_);
  const auto found = faults_.find(host);
  if (found == faults_.end() || found->second.place != place || count < found->second.count) return Fault::none;
  const Fault fault = found->second.fault;
  faults_.erase(found);
  return fault;
}

Schedule::Schedule(std::uint32_t seed, std::uint64_t samples) : random_(seed, RandomUse::drawing, 0, 0) {
  for (std::uint32_t i = 2 + random_.below(5); i > 0; --i) {
    when_.push_back(random_.below(static_cast<std::uint32_t>(samples)));
  }
  std::ranges::sort(when_, std::greater());
  for (std::uint32_t i = 1 + random_.below(4); i > 0; --i) hosts_.push_back(unused_host());
}

FaultAt Schedule::fault_at() {
  return [this](const WorkerFacts& worker, Place place, comm::CommPoint, int count) {
    return faults_.fault_at(worker.host, place, count);
  };
}

void Schedule::act(SimJob& job) {
  if (when_.empty() || job.members().empty() || job.furthest().samples_seen < when_.back()) return;
  when_.pop_back();
  disturb(job);
}

void Schedule::disturb(SimJob& job) {
  switch (random_.below(10)) {
    case 0:
      return add(job);
    case 1:
      return add_failing(job);
    case 2:
      return remove(job);
    case 3:
      return replace(job);
    case 4:
      return fail_member(job, Fault::hang);
    case 5:
      return void(job.agent_pool().stop(any_member(job)));
    case 6:
      return kill_members(job, 1 + random_.below(3));
    case 7:
      return fail_member(job, Fault::die);
    default:
      return kill_members(job, 1);
  }
}

void Schedule::add(SimJob& job) {
  hosts_.push_back(unused_host());
  job.set_hosts(hosts_);
}

// Adds a host whose worker dies or hangs while it prepares, enters, receives the state, or in one of its first steps.
void Schedule::add_failing(SimJob& job) {
  constexpr Place kPlaces[] = {Place::progress, Place::enter, Place::comm,
                               Place::entered,  Place::vote,  Place::end_apply};
  const Place place = kPlaces[random_.below(std::size(kPlaces))];
  const bool may_hang = place != Place::comm && random_.below(3) == 0;
  const std::uint32_t count = random_.below(place == Place::comm ? 20 : 2);
  hosts_.push_back(unused_host());
  faults_.set(hosts_.back(), {place, static_cast<int>(count), may_hang ? Fault::hang : Fault::die});
  job.set_hosts(hosts_);
}

void Schedule::remove(SimJob& job) {
  if (hosts_.size() < 2) return;
  hosts_.erase(hosts_.begin() + random_.below(static_cast<std::uint32_t>(hosts_.size())));
  job.set_hosts(hosts_);
}

void Schedule::replace(SimJob& job) {
  hosts_[random_.below(static_cast<std::uint32_t>(hosts_.size()))] = unused_host();
  job.set_hosts(hosts_);
}

void Schedule::fail_member(SimJob& job, Fault fault) {
  constexpr Place kPlaces[] = {Place::progress, Place::vote, Place::judge, Place::begin_apply, Place::end_apply};
  const Place place = kPlaces[random_.below(std::size(kPlaces))];
  faults_.set(job.state().workers.at(any_member(job)).host, {place, 0, fault});
}

void Schedule::kill_members(SimJob& job, std::uint32_t count) {
  for (; count > 0; --count) job.agent_pool().kill(any_member(job));
}

WorkerId Schedule::any_member(SimJob& job) {
  const std::vector<WorkerId> members = job.members();
  return members[random_.below(static_cast<std::uint32_t>(members.size()))];
}

std::string Schedule::unused_host() { return fmt::format("h{}", ++named_); }

}  // namespace dtrain::world
