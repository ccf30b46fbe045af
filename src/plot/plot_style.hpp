// What all pictures have in common.
#pragma once

#include <string>

#include "drawing.hpp"

namespace dtrain::plot {

inline constexpr Color kInk = 0x222222, kFaint = 0x767676, kGrid = 0xE4E4E4, kFrame = 0xB0B0B0;
// The palette of Okabe and Ito, which colour-blind readers can distinguish. Signs and words repeat the meaning.
inline constexpr Color kBlue = 0x0072B2, kOrange = 0xE69F00, kGreen = 0x009E73, kVermilion = 0xD55E00,
                       kPurple = 0xCC79A7, kSkyBlue = 0x56B4E9, kYellow = 0xF0E442, kGrey = 0x6E6E6E;
inline constexpr double kTitleLine = 32, kSubtitleLine = 52;
inline constexpr double kLetterShare = 0.56;  // mean width of a letter of size 1

// Cut to about so many points, at the end of a letter of UTF-8.
std::string fitted(const std::string& text, double size, double width);

}  // namespace dtrain::plot
