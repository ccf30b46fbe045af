// Passes contributions on, and gives a sign of life as parts of them become final: a step of many shards may take
// minutes on a slow machine, and a worker without a sign of progress counts as hung.
#pragma once

#include <chrono>
#include <exception>
#include <functional>

#include <dtrain/backend/backend.hpp>
#include <dtrain/base/mutex.hpp>

namespace dtrain::train {

class SignOfLifeSink final : public backend::ContributionSink {
 public:
  using Clock = std::chrono::steady_clock;

  // `sign`, if there is one, is called from any of the executable's threads, by one at a time and at most once in
  // `between`. Both must outlive this.
  SignOfLifeSink(backend::ContributionSink& sink, const std::function<void()>& sign,
                 Clock::duration between = std::chrono::seconds(1))
      : sink_(sink), sign_(sign), between_(between), last_(Clock::now()) {}

  std::span<float> buffer(const backend::ShardRange& shard) override { return sink_.buffer(shard); }
  void ready(const backend::ShardRange& shard, std::int64_t first, std::int64_t size, bool last) override {
    sink_.ready(shard, first, size, last);
    if (sign_) give_sign(Clock::now());
  }
  // Once all is computed: throws what a sign threw.
  void rethrow() {
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void give_sign(Clock::time_point now) {
    const MutexLock lock(mutex_);
    if (failure_ || now - last_ < between_) return;
    last_ = now;
    try {
      sign_();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  backend::ContributionSink& sink_;
  const std::function<void()>& sign_;
  const Clock::duration between_;
  Mutex mutex_;
  Clock::time_point last_ DTRAIN_GUARDED_BY(mutex_);  // sign, or the begin
  std::exception_ptr failure_ DTRAIN_GUARDED_BY(mutex_);
};

}  // namespace dtrain::train
