// Waits for a service to reach a state.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace dtrain::cluster {

// Polls until done() is true, first often, then every few seconds. Throws RemoteError "WHAT: not within ..." after
// `patience`, and Stopped after SIGINT or SIGTERM.
void wait_until(std::chrono::milliseconds patience, const std::string& what, const std::function<bool()>& done);

// How long AWS may take to show what exists: what a call made, or what another call says exists.
inline constexpr std::chrono::seconds kUntilVisible{60};

// The pauses between looks: short at first, then a few seconds.
class GrowingPause {
 public:
  void wait();  // throws Stopped after SIGINT or SIGTERM

 private:
  std::chrono::milliseconds next_{100};
};

// Looks until look() finds something, and at least once; what it returned last after `patience`.
template <typename Look>
auto look_until(std::chrono::milliseconds patience, const Look& look) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (GrowingPause pause;; pause.wait()) {
    if (auto found = look(); found || std::chrono::steady_clock::now() >= end) return found;
  }
}

// Throws Stopped after SIGINT or SIGTERM.
void pause_for(std::chrono::milliseconds time);

}  // namespace dtrain::cluster
