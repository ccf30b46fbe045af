#include "wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::cluster {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLongest{5'000}, kSignalCheck{50};

}  // namespace

void pause_for(milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (stop_signal()) throw Stopped("stopped while waiting");
    std::this_thread::sleep_for(kSignalCheck);
  }
}

void GrowingPause::wait() {
  pause_for(next_);
  next_ = std::min(next_ * 3 / 2, kLongest);
}

void wait_until(milliseconds patience, const std::string& what, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (GrowingPause pause; !done(); pause.wait()) {
    if (std::chrono::steady_clock::now() >= end) {
      throw RemoteError(fmt::format("{}: not within {}", what, format_duration(patience)),
                        "run the same command again");
    }
  }
}

}  // namespace dtrain::cluster
