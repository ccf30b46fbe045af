// How long a wait may take, and who may end it early.
#pragma once

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <thread>

#include <dtrain/base/error.hpp>

namespace dtrain::net::ssh {

using Clock = std::chrono::steady_clock;

// A wait looks this often whether it should end: the most that one call into poll(2) takes.
constexpr std::chrono::milliseconds kLook(100);

struct Patience {
  Clock::time_point until;
  std::stop_token stop;

  // The time for the next look; 0: over. Throws Stopped.
  std::chrono::milliseconds next_look() const {
    if (stop.stop_requested()) throw Stopped("stopped while waiting for another host");
    return std::clamp(std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()), std::chrono::milliseconds(0),
                      kLook);
  }
  bool is_over() const { return Clock::now() >= until; }
  void sleep(std::chrono::milliseconds time) const {
    const Patience pause{std::min(until, Clock::now() + time), stop};
    for (auto look = pause.next_look(); look.count() > 0; look = pause.next_look()) std::this_thread::sleep_for(look);
  }
};

}  // namespace dtrain::net::ssh
