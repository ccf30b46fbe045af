// Masks as runs, as COCO stores them: the arithmetic of its maskApi, number for number, without its undefined cases.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::data {

// A rectangle in pixels of a picture, as COCO has them.
struct PixelBox {
  double left = 0, top = 0, width = 0, height = 0;
  double area() const { return width * height; }
  friend bool operator==(const PixelBox&, const PixelBox&) = default;
};

// Lengths of runs of 0 and of 1 by turns, 0 first, down the columns from the left one. They add up to h * w.
struct Rle {
  int h = 0, w = 0;
  std::vector<std::uint32_t> runs;
  friend bool operator==(const Rle&, const Rle&) = default;
};

// Throws DataError unless the runs add up to h * w.
void check_runs(const Rle& mask);

// `pixels`: rows of w, from the top; what is not 0 is in the mask.
Rle encode_mask(std::span<const std::uint8_t> pixels, int h, int w);
// Writes 1 where the mask is and 0 elsewhere. mask.h * mask.w pixels.
void decode_mask(const Rle& mask, std::span<std::uint8_t> pixels);

// Why these numbers are no corners x, y, x, y, ... of a polygon: at least 3, finite. nullopt: they are.
std::optional<std::string> fault_of_corners(std::span<const double> corners);
// The corners have no fault.
Rle mask_of_polygon(std::span<const double> corners, int h, int w);
// A mask of no pixel.
Rle empty_mask(int h, int w);
// All that any of them covers; all are of one size.
Rle united(std::span<const Rle> masks);

std::uint64_t mask_area(const Rle& mask);
PixelBox mask_box(const Rle& mask);  // the smallest around it; all 0 for none

// Of COCO's results and crowds. Throws DataError for a text that is none.
std::string text_of_runs(const Rle& mask);
Rle runs_of_text(std::string_view text, int h, int w);

// The share that both cover of what either covers; with a crowd, of what the found one covers.
double box_overlap(const PixelBox& found, const PixelBox& truth, bool crowd);
double mask_overlap(const Rle& found, const Rle& truth, bool crowd);  // of one size

}  // namespace dtrain::data
