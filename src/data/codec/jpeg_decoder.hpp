// One JPEG, decoded row by row: only the rows and columns that are wanted, at 1, 1/2, 1/4 or 1/8 of its size (the
// inverse DCT of fewer coefficients, which costs less and blurs as a reduction should).
#pragma once

#include <cstdint>
#include <memory>

#include <dtrain/data/image.hpp>

namespace dtrain::data {

enum class JpegPixels { grey = 1, rgb = 3, rgbx = 4, inks = 5 };  // bytes a pixel, but 4 for inks: C M Y K, 255 none

// A part of the image at this scale; bottom and right are exclusive.
struct JpegPart {
  int scale = 1;  // 1, 2, 4 or 8: the divisor of both sides, which are rounded up
  int top = 0, bottom = 0, left = 0, right = 0;
};

// Used again and again by one thread. Every member throws DataError, beginning with "JPEG: ", for damage, also where
// libjpeg would go on with lost pixels.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;

  void open(ByteView payload);  // reads the header; the bytes must stay until close()
  int h() const;
  int w() const;
  bool is_grey() const;
  bool has_inks() const;

  // After it, next_row() writes row part.top, part.top + 1, ... of the columns() columns from left() on, which are at
  // least those of the part.
  void begin(JpegPixels pixels, const JpegPart& part);
  int left() const;
  int columns() const;
  void next_row(std::uint8_t* out);
  // Lets go of the picture. whole: what follows the last row is read first, so that damage shows.
  void close(bool whole);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One a thread: to make it costs a quarter of decoding a small image.
JpegDecoder& this_threads_jpeg_decoder();

inline int at_scale(int length, int scale) { return (length + scale - 1) / scale; }

}  // namespace dtrain::data
