#include "stop_tokens.hpp"

#include <dtrain/base/stop.hpp>

namespace dtrain::job {
namespace {

constexpr std::chrono::milliseconds kPoll(20), kSignalPoll(50);

}  // namespace

StopWatch::StopWatch() {
  watch_stop_signals();
  thread_ = std::jthread([source = source_](const std::stop_token& done) mutable {
    while (!done.stop_requested() && stop_signal() == 0) std::this_thread::sleep_for(kSignalPoll);
    if (!done.stop_requested()) source.request_stop();
  });
}

TimeLimit::TimeLimit(std::chrono::seconds time) : end_(Clock::now() + time) {
  thread_ = std::jthread([this](const std::stop_token& done) {
    while (!done.stop_requested() && !is_over() && stop_signal() == 0) std::this_thread::sleep_for(kPoll);
    if (!done.stop_requested()) source_.request_stop();
  });
}

void TimeLimit::begin_again(std::chrono::seconds time) { end_ = Clock::now() + time; }

bool TimeLimit::is_over() const { return Clock::now() >= end_.load(); }

}  // namespace dtrain::job
