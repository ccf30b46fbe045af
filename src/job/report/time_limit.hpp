// A time that work may take, as a stop token; SIGINT and SIGTERM end it before.
#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

namespace dtrain::job {

// Safe for concurrent use.
class TimeLimit {
 public:
  explicit TimeLimit(std::chrono::seconds time);
  // So much longer from now on.
  void begin_again(std::chrono::seconds time);
  bool is_over() const;
  std::stop_token token() const { return source_.get_token(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::time_point> end_;
  std::stop_source source_;
  std::jthread thread_;
};

}  // namespace dtrain::job
