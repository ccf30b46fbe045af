// A membership that measures how long the trainer stays in each phase.
#pragma once

#include <chrono>
#include <map>
#include <utility>

#include <dtrain/elastic/membership.hpp>

namespace dtrain::bench {

class PhaseClock final : public elastic::Membership {
 public:
  explicit PhaseClock(elastic::Membership& inner) : inner_(inner) {}

  // Seconds by phase since the last call.
  std::map<elastic::Phase, double> take() {
    count();
    return std::exchange(seconds_, {});
  }

  void probed(const std::string& hash) override { inner_.probed(hash); }
  elastic::Entry enter(const elastic::TrainingPosition& position) override { return inner_.enter(position); }
  void entered(const elastic::TrainingPosition& position) override { inner_.entered(position); }
  std::uint64_t vote() override { return inner_.vote(); }
  elastic::Verdict judge(std::span<const std::uint64_t> votes, bool at_epoch_end) override {
    return inner_.judge(votes, at_epoch_end);
  }
  void require_generation() override { inner_.require_generation(); }
  void begin_apply() override { inner_.begin_apply(); }
  void end_apply(const elastic::TrainingPosition& position) override { inner_.end_apply(position); }
  void lost(const PeerLost& error) override { inner_.lost(error); }
  void progress(elastic::Phase phase) override {
    count();
    phase_ = phase;
    inner_.progress(phase);
  }
  void computes(double share) override { inner_.computes(share); }
  void report(const Json& event) override { inner_.report(event); }

 private:
  using Clock = std::chrono::steady_clock;
  void count() {
    const Clock::time_point now = Clock::now();
    seconds_[phase_] += std::chrono::duration<double>(now - std::exchange(since_, now)).count();
  }

  elastic::Membership& inner_;
  elastic::Phase phase_ = elastic::Phase::building;
  Clock::time_point since_ = Clock::now();
  std::map<elastic::Phase, double> seconds_;
};

}  // namespace dtrain::bench
