// What all pictures have in common.
#pragma once

#include "drawing.hpp"

namespace dtrain::plot {

inline constexpr Color kInk = 0x222222, kFaint = 0x767676, kGrid = 0xE4E4E4, kFrame = 0xB0B0B0;
inline constexpr double kTitleLine = 32, kSubtitleLine = 52;

}  // namespace dtrain::plot
