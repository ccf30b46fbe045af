// Random schedules of joins, leaves, deaths and hangs: whatever happens, the job ends with the bits of an undisturbed
// run, and every sample is consumed once in every epoch. DTRAIN_WORLD_SEEDS says how many are tried.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include <dtrain/base/random.hpp>
#include <dtrain/base/text.hpp>

#include "toy_job.hpp"

namespace dtrain::world {
namespace {

using elastic::WorkerId;

constexpr std::uint32_t kQuickSeeds = 40;

std::uint32_t seeds() {
  const char* text = std::getenv("DTRAIN_WORLD_SEEDS");
  return text ? static_cast<std::uint32_t>(std::stoul(text)) : kQuickSeeds;
}

// Where a worker of a host will end, once.
struct Doom {
  Place place = Place::enter;
  int count = 0;
  Fate fate = Fate::die;
};

// Any thread.
class Dooms {
 public:
  void set(const std::string& host, const Doom& doom) {
    const std::lock_guard lock(mutex_);
    dooms_[host] = doom;
  }
  Fate fate_of(const std::string& host, Place place, int count) {
    const std::lock_guard lock(mutex_);
    const auto found = dooms_.find(host);
    if (found == dooms_.end() || found->second.place != place || count < found->second.count) return Fate::none;
    const Fate fate = found->second.fate;
    dooms_.erase(found);
    return fate;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Doom> dooms_;
};

class Schedule {
 public:
  Schedule(std::uint32_t seed, const ToyTask& task, Dooms& dooms)
      : random_(seed, RandomUse::drawing, 0, 0), dooms_(dooms) {
    const std::uint32_t steps = task.epochs * task.steps();
    for (std::uint32_t i = 2 + random_.below(5); i > 0; --i) when_.push_back(random_.below(steps));
    std::ranges::sort(when_, std::greater());
    for (std::uint32_t i = 1 + random_.below(4); i > 0; --i) hosts_.push_back(unused_host());
  }
  const std::vector<std::string>& hosts() const { return hosts_; }

  void act(SimJob& job, const ToyTask& task) {
    if (when_.empty() || job.members().empty()) return;
    const elastic::Standing at = job.furthest();
    if (std::uint64_t{at.epoch} * task.steps() + at.step < when_.back()) return;
    when_.pop_back();
    disturb(job);
  }

 private:
  void disturb(SimJob& job) {
    switch (random_.below(10)) {
      case 0:
        return add(job);
      case 1:
        return add_doomed(job);
      case 2:
        return remove(job);
      case 3:
        return replace(job);
      case 4:
        return end(job, Fate::hang);
      case 5:
        return void(job.crew().stop(any_member(job)));
      case 6:
        return kill_some(job, 1 + random_.below(3));
      case 7:
        return end(job, Fate::die);
      default:
        return kill_some(job, 1);
    }
  }

  void add(SimJob& job) {
    hosts_.push_back(unused_host());
    job.set_hosts(hosts_);
  }

  // Dies or hangs while it prepares, enters, receives the state, or in one of its first steps.
  void add_doomed(SimJob& job) {
    constexpr Place kPlaces[] = {Place::progress, Place::enter, Place::comm,
                                 Place::entered,  Place::vote,  Place::end_apply};
    const Place place = kPlaces[random_.below(std::size(kPlaces))];
    const bool may_hang = place != Place::comm && random_.below(3) == 0;
    const int count = place == Place::comm ? static_cast<int>(random_.below(20)) : static_cast<int>(random_.below(2));
    const std::string host = unused_host();
    dooms_.set(host, {place, count, may_hang ? Fate::hang : Fate::die});
    hosts_.push_back(host);
    job.set_hosts(hosts_);
  }

  void remove(SimJob& job) {
    if (hosts_.size() < 2) return;
    hosts_.erase(hosts_.begin() + random_.below(static_cast<std::uint32_t>(hosts_.size())));
    job.set_hosts(hosts_);
  }

  void replace(SimJob& job) {
    hosts_[random_.below(static_cast<std::uint32_t>(hosts_.size()))] = unused_host();
    job.set_hosts(hosts_);
  }

  void end(SimJob& job, Fate fate) {
    constexpr Place kPlaces[] = {Place::progress, Place::vote, Place::judge, Place::begin_apply, Place::end_apply};
    const Place place = kPlaces[random_.below(std::size(kPlaces))];
    dooms_.set(job.state().workers.at(any_member(job)).host, {place, 0, fate});
  }

  void kill_some(SimJob& job, std::uint32_t count) {
    for (; count > 0; --count) job.crew().kill(any_member(job));
  }

  WorkerId any_member(SimJob& job) {
    const std::vector<WorkerId> members = job.members();
    return members[random_.below(static_cast<std::uint32_t>(members.size()))];
  }

  std::string unused_host() { return fmt::format("h{}", ++named_); }

  RandomStream random_;
  Dooms& dooms_;
  std::vector<std::uint32_t> when_;  // steps of the whole run, the next one last
  std::vector<std::string> hosts_;
  int named_ = 0;
};

class RandomSchedule : public testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomSchedule, EndsWithTheSameBitsAndEverySampleOnce) {
  const ToyTask task{.epochs = 4};
  Dooms dooms;
  Schedule schedule(GetParam(), task, dooms);
  SimOptions options;
  options.fate_of = [&](const WorkerFacts& worker, Place place, comm::CommPoint, int count) {
    return dooms.fate_of(worker.host, place, count);
  };
  elastic::Policy policy = quick_policy();
  policy.boundary = GetParam() % 4 == 0 ? elastic::Boundary::epoch : elastic::Boundary::step;
  ToyJob toy(schedule.hosts(), task, policy, options);
  EXPECT_EQ(toy.run_and_judge([&](SimJob& job) { schedule.act(job, task); }), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSchedule, testing::Range(1u, seeds() + 1));

}  // namespace
}  // namespace dtrain::world
