// The most threads of one kind that a user may ask for: far above what helps, and below what systems refuse.
#pragma once

namespace dtrain::config {

inline constexpr int kMostThreads = 1024;

}  // namespace dtrain::config
