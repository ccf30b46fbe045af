// Pauses between tries to read from a server that is away for a while.
#pragma once

#include <algorithm>
#include <chrono>

namespace dtrain::data {

inline constexpr std::chrono::milliseconds kFirstPause{1'000};

inline std::chrono::milliseconds longer_pause(std::chrono::milliseconds pause) {
  return std::min<std::chrono::milliseconds>(2 * pause, std::chrono::seconds(30));
}

}  // namespace dtrain::data
