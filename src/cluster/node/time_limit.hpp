// The end of a cluster with a time limit: a worker that was started later than the head ends with it.
#pragma once

#include <chrono>
#include <optional>

#include <dtrain/base/files.hpp>

namespace dtrain::cluster {

// The time until the boot script ends this machine, from the file that the script wrote to the node's folder; nullopt:
// it does not. `root` is where /proc is.
std::optional<std::chrono::seconds> time_left(const Path& folder, const Path& root = "/");

// When this machine is to end, by what heads said. Not safe for several threads.
class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;
  // A head that replaces a lost one begins anew, so the earliest end holds.
  void hear(std::chrono::seconds left, Clock::time_point now);
  // True once when the time is over, and again a minute later, should the machine still run then.
  bool take_end(Clock::time_point now);

 private:
  std::optional<Clock::time_point> end_;
};

}  // namespace dtrain::cluster
