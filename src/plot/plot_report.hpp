// Pictures of how good a classifier is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dtrain/data/image.hpp>

#include "drawing.hpp"

namespace dtrain::plot {

// `counts`: [classes * classes], a row for each true class; `names`: by label, one for each. Of many classes only those
// with the most mistakes are drawn.
Drawing draw_confusion(std::span<const std::uint64_t> counts, const std::vector<std::string>& names);

// Guesses whose probability lies in (low, high]; confidence and accuracy are means.
struct ReliabilityBin {
  double low = 0, high = 1;
  std::uint64_t samples = 0;
  double confidence = 0, accuracy = 0;
};
Drawing draw_reliability(std::span<const ReliabilityBin> bins, double calibration_error);

struct Mistake {
  data::Image picture;  // in colour; at most kThumbnailSide high and wide
  std::string truth, guess;
  double probability = 0;  // of the guess
  std::string caption;     // which picture it is
};
inline constexpr int kThumbnailSide = 176;
// The mistakes from left to right and top to bottom, each with its names.
data::Image draw_mistakes(std::span<const Mistake> mistakes);

}  // namespace dtrain::plot
