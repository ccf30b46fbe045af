// Stop tokens of SIGINT and SIGTERM, and of a time limit, for work in threads. Each object has a thread that polls; the
// destructor joins it, and requests no stop.
#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

namespace dtrain::job {

// A stop token that SIGINT and SIGTERM request.
class StopWatch {
 public:
  StopWatch();  // installs the handlers of base/stop.hpp
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread thread_;
};

// A stop token that the end of a time limit, SIGINT and SIGTERM request. Safe for concurrent use.
class TimeLimit {
 public:
  explicit TimeLimit(std::chrono::seconds time);
  // Restarts the limit from now.
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
