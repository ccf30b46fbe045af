#include "stop_watch.hpp"

#include <chrono>

#include <dtrain/base/stop.hpp>

namespace dtrain::job {
namespace {

constexpr std::chrono::milliseconds kLook(50);

}  // namespace

StopWatch::StopWatch() {
  watch_stop_signals();
  thread_ = std::jthread([source = source_](const std::stop_token& done) mutable {
    while (!done.stop_requested() && stop_signal() == 0) std::this_thread::sleep_for(kLook);
    if (!done.stop_requested()) source.request_stop();
  });
}

}  // namespace dtrain::job
