#include "time_limit.hpp"

#include <dtrain/base/stop.hpp>

namespace dtrain::job {
namespace {

constexpr std::chrono::milliseconds kLook(20);

}  // namespace

TimeLimit::TimeLimit(std::chrono::seconds time) : end_(Clock::now() + time) {
  thread_ = std::jthread([this](const std::stop_token& done) {
    while (!done.stop_requested() && !is_over() && stop_signal() == 0) std::this_thread::sleep_for(kLook);
    if (!done.stop_requested()) source_.request_stop();
  });
}

void TimeLimit::begin_again(std::chrono::seconds time) { end_ = Clock::now() + time; }

bool TimeLimit::is_over() const { return Clock::now() >= end_.load(); }

}  // namespace dtrain::job
