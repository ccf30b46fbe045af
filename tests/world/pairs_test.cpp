// Two faults strike two hosts of a job nearly together, the second one in a chosen phase of the recovery from the
// first. The job must go on without any time-out but those that find the faults: the one that ends a change which
// cannot connect is longer than the job may last.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include <dtrain/base/random.hpp>

#include "checked_toy_training.hpp"

namespace dtrain::world {
namespace {

using namespace std::chrono_literals;

enum class When { together, frozen, prepared, connecting, committed, entering };
constexpr int kPhases = 6;

bool has_come(const elastic::State& state, elastic::Generation before, When when) {
  const auto& change = state.change;
  const auto& current = state.current;
  const bool is_next = current && current->number > before;
  switch (when) {
    case When::together:
      return true;
    case When::frozen:
      return state.freezing.has_value();
    case When::prepared:
      return change.has_value();
    case When::connecting:
      return change && change->awaited < change->members.size();
    case When::committed:
      return is_next;
    case When::entering:
      return is_next && current->awaited < current->members.size();
  }
  return false;
}

// Depends on its seed alone, but for the phases of which the coordinator sees several at once: then the next one
// counts.
class PairOfFaults {
 public:
  PairOfFaults(std::uint32_t seed, std::uint64_t samples) : random_(seed, RandomUse::drawing, 0, 0) {
    const std::uint32_t count = 4 + random_.below(4);
    for (std::uint32_t i = 1; i <= count; ++i) hosts_.push_back(fmt::format("h{}", i));
    when_ = static_cast<When>(seed % kPhases);
    begin_ = random_.below(static_cast<std::uint32_t>(samples) / 4) + 1;
  }
  const std::vector<std::string>& hosts() const { return hosts_; }
  bool is_over() const { return struck_ == 2; }

  void act(SimJob& job) {
    if (struck_ == 0 && job.state().current && job.state().current->stepped && job.furthest().samples_seen >= begin_) {
      before_ = job.state().current->number;
      victim_ = strike(job);
    }
    if (struck_ != 1) return;
    const auto& current = job.state().current;
    const bool too_late = current && current->number > before_ && current->stepped;
    if (too_late || has_come(job.state(), before_, when_)) strike(job);
  }

 private:
  // Returns the host.
  std::string strike(SimJob& job) {
    std::vector<std::string> others;
    for (const elastic::WorkerId id : job.members()) others.push_back(job.state().workers.at(id).host);
    std::erase(others, victim_);
    if (others.empty()) return {};
    const std::string host = others[random_.below(static_cast<std::uint32_t>(others.size()))];
    const elastic::WorkerId worker = job.state().hosts.at(host).slots.at(0);
    switch (random_.below(4)) {
      case 0:
        job.agent_pool().kill(worker);
        break;
      case 1:
        job.agent_pool().stop(worker);
        break;
      default:
        job.agent_pool().cut_off(host);
    }
    ++struck_;
    return host;
  }

  RandomStream random_;
  std::vector<std::string> hosts_;
  When when_ = When::together;
  std::uint64_t begin_ = 0;
  std::atomic<int> struck_ = 0;
  elastic::Generation before_ = 0;
  std::string victim_;
};

elastic::Policy patient_policy() {
  elastic::Policy policy = quick_policy();
  policy.quorum = true;
  policy.mesh_timeout = 60s;
  return policy;
}

class Pairs : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Pairs, OfFaultsEndWithTheSameBitsAndWithoutATimeOutOfTheMesh) {
  CheckedToyTraining training({.epochs = 40});
  PairOfFaults pair(GetParam(), training.samples());
  SimOptions options;
  // The workers of a lost host are missed first, so a change begins while its agent still counts.
  options.agent_silence = quick_policy().heartbeat_timeout + 100ms;
  // Until both faults have struck, steps are so slow that the job cannot end.
  options.fault_at = [&](const WorkerFacts&, Place place, comm::CommPoint, int) {
    if (place == Place::vote && !pair.is_over()) std::this_thread::sleep_for(3ms);
    return Fault::none;
  };
  CheckedJob job(training, pair.hosts(), patient_policy(), options);
  EXPECT_EQ(job.run([&](SimJob& sim) { pair.act(sim); }), "");
  EXPECT_TRUE(pair.is_over());
}

INSTANTIATE_TEST_SUITE_P(Seeds, Pairs, testing::Range(1u, seeds() / 3 + 1));

}  // namespace
}  // namespace dtrain::world
