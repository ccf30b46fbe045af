// Shards that meet at synchronized batch norms: each meeting is an all_gather() of rows. One reduction at a time
// excludes other calls of the communicator, so contributions are kept until all are computed, and travel then.
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/comm/communicator.hpp>
#include <dtrain/elastic/membership.hpp>

namespace dtrain::train {

class NormMeeting final : public backend::MeetingSink {
 public:
  // `size`: floats of a contribution. Both must outlive this; the membership hears of each wait for others.
  NormMeeting(comm::Communicator& comm, std::int64_t size, elastic::Membership& membership)
      : comm_(comm), size_(static_cast<std::size_t>(size)), membership_(membership) {}

  // The trainer's thread. The contributions of the step before are lost.
  void begin_step(std::span<const backend::ShardRange> shards);
  // The trainer's thread, once all is computed.
  void hand_over(std::span<const backend::ShardRange> shards, backend::ContributionSink& sink);
  std::chrono::microseconds waited() const { return waited_; }  // since begin_step()

  std::span<float> buffer(const backend::ShardRange& shard) override;
  void ready(const backend::ShardRange&, std::int64_t, std::int64_t, bool) override {}
  std::vector<double> gather(std::span<const double> mine) override;

 private:
  comm::Communicator& comm_;
  const std::size_t size_;
  elastic::Membership& membership_;
  std::chrono::microseconds waited_{};
  Mutex mutex_;
  std::map<int, std::vector<float>> kept_ DTRAIN_GUARDED_BY(mutex_);  // [shard]
};

}  // namespace dtrain::train
