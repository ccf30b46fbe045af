// Resizing by rows: a window of a picture becomes h x w pixels while its rows arrive from the top, so that no whole
// picture need be there. Pixels are RGBX (4 bytes, the last of no meaning) and all arithmetic is in whole numbers, the
// same on every processor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <dtrain/data/image.hpp>

namespace dtrain::data {

inline constexpr int kPixelBytes = 4;
// Rows given to resample_rows() must be readable for so many pixels after their last one, whatever these hold.
inline constexpr int kRowSlack = 64;

// bilinear: between the two nearest pixels, as OpenCV's INTER_LINEAR. smooth: over all pixels that an output covers
// (a triangle as wide as the reduction), as Pillow's BILINEAR.
enum class Filter { bilinear, smooth };

// Which source pixels make up each output pixel along one axis, and by how much.
struct Taps {
  int count = 0;                     // of each output; even
  int begin = 0, end = 0;            // source pixels that any output needs
  std::vector<int> first;            // of each output
  std::vector<std::int16_t> weight;  // count of each output, which add up to 1 << kWeightBits
};
inline constexpr int kWeightBits = 14;

// The part [from, from + extent) of an axis as `outputs` pixels; pixel centres are at halves and nothing outside
// [low, high) is looked at. mirrored: the last output first. Reuses the memory of `taps`.
struct Span {
  double from = 0, extent = 0;
  int low = 0, high = 0;
};
void make_taps(const Span& span, int outputs, Filter filter, bool mirrored, Taps& taps);

// One row of `across.first.size()` pixels.
void resample_across(const std::uint8_t* row, const Taps& across, std::uint8_t* out);
// rows[k] times weight[k], k < count.
void resample_down(const std::uint8_t* const* rows, const std::int16_t* weight, int count, int bytes,
                   std::uint8_t* out);

// Memory that is used again for the next picture.
struct ResampleScratch {
  Taps across, down;
  std::vector<std::uint8_t> ring, row;
  std::vector<const std::uint8_t*> rows;
};

// next_row() gives source row down.begin, down.begin + 1, ... down.end - 1; take(y, pixels) gets the outputs in order.
template <typename NextRow, typename Take>
void resample_rows(ResampleScratch& scratch, const NextRow& next_row, const Take& take) {
  const Taps& across = scratch.across;
  const Taps& down = scratch.down;
  const std::size_t bytes = across.first.size() * kPixelBytes, count = static_cast<std::size_t>(down.count);
  scratch.ring.resize(bytes * count);
  scratch.row.resize(bytes);
  scratch.rows.resize(count);
  const auto kept = [&](int y) { return scratch.ring.data() + static_cast<std::size_t>(y) % count * bytes; };
  int arrived = down.begin;
  for (std::size_t y = 0; y < down.first.size(); ++y) {
    const int first = down.first[y];
    for (; arrived < std::min(first + down.count, down.end); ++arrived) {
      resample_across(next_row(), across, kept(arrived));
    }
    for (int k = 0; k < down.count; ++k) {
      scratch.rows[static_cast<std::size_t>(k)] = kept(std::min(first + k, down.end - 1));
    }
    resample_down(scratch.rows.data(), down.weight.data() + y * count, down.count, static_cast<int>(bytes),
                  scratch.row.data());
    take(static_cast<int>(y), scratch.row.data());
  }
}

// Grey or colour to RGBX; grey is repeated.
void to_rgbx(const std::uint8_t* pixels, int channels, int count, std::uint8_t* out);

// The whole image as h x w. Throws DataError where these are more pixels than a picture may have.
Image resize_image(const Image& image, int h, int w);

}  // namespace dtrain::data
