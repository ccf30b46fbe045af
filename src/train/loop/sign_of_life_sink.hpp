// Passes contributions on, and gives a sign of life as parts of them become final: a step of many shards may take
// minutes on a slow machine, and a worker without a sign of progress counts as hung.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include <dtrain/backend/backend.hpp>
#include <dtrain/base/mutex.hpp>

namespace dtrain::train {

// An executable gets it by as_sink() alone: it takes deferred parts only where the other sink does.
class SignOfLifeSink final : backend::DeferringSink {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kInterval{1};

  // `sign`, if there is one, is called from any of the executable's threads, by one at a time and at most once in
  // `between`. Both must outlive this.
  SignOfLifeSink(backend::ContributionSink& sink, const std::function<void()>& sign,
                 Clock::duration between = kInterval)
      : sink_(sink), sign_(sign), between_(between), last_(Clock::now()) {}
  SignOfLifeSink(backend::DeferringSink& sink, const std::function<void()>& sign, Clock::duration between = kInterval)
      : SignOfLifeSink(static_cast<backend::ContributionSink&>(sink), sign, between) {
    deferring_ = &sink;
  }
  backend::StepSink as_sink() {
    if (deferring_) return {*this};
    return {static_cast<backend::ContributionSink&>(*this)};
  }

  std::span<float> buffer(const backend::ShardRange& shard) override { return sink_.buffer(shard); }
  void ready(const backend::ShardRange& shard, std::int64_t first, std::int64_t size, bool last) override {
    sink_.ready(shard, first, size, last);
    if (sign_) give_sign(Clock::now());
  }
  void defer(const backend::ShardRange& shard, FloatRange part, std::shared_ptr<const DeferredFloats> floats) override {
    deferring_->defer(shard, part, std::move(floats));
  }
  void compute_deferred() override {
    deferring_->compute_deferred();
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
  backend::DeferringSink* deferring_ = nullptr;  // the same, if it is one
  const std::function<void()>& sign_;
  const Clock::duration between_;
  Mutex mutex_;
  Clock::time_point last_ DTRAIN_GUARDED_BY(mutex_);  // sign, or the begin
  std::exception_ptr failure_ DTRAIN_GUARDED_BY(mutex_);
};

}  // namespace dtrain::train
