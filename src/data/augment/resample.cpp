#include "resample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>

#include "codec/codecs.hpp"

namespace dtrain::data {
namespace {

constexpr int kOne = 1 << kWeightBits;

// The weights of one output in double, then as whole numbers; what rounding lost goes to the largest.
class OutputTaps {
 public:
  // `exact` is memory that is used again.
  OutputTaps(const Span& span, double centre, double reach, int most, std::vector<double>& exact) : exact_(exact) {
    exact_.clear();
    first_ = std::max(span.low, static_cast<int>(std::floor(centre - reach)) + 1);
    // Rounding may find one more at the very end, of no weight.
    const int last = std::min({span.high, static_cast<int>(std::ceil(centre + reach)), first_ + most}) - 1;
    if (first_ > last) {  // halfway between two pixels' reaches, or outside
      first_ = std::clamp(static_cast<int>(std::lround(centre)), span.low, span.high - 1);
      exact_.push_back(1);
      return;
    }
    for (int at = first_; at <= last; ++at) exact_.push_back(1 - std::abs(at - centre) / reach);
  }

  int first() const { return first_; }
  int count() const { return static_cast<int>(exact_.size()); }

  void write(std::int16_t* weight) const {
    double sum = 0;
    for (const double each : exact_) sum += each;
    int rest = kOne;
    std::size_t largest = 0;
    for (std::size_t k = 0; k < exact_.size(); ++k) {
      weight[k] = static_cast<std::int16_t>(exact_[k] / sum * kOne + 0.5);
      rest -= weight[k];
      if (exact_[k] > exact_[largest]) largest = k;
    }
    weight[largest] = static_cast<std::int16_t>(weight[largest] + rest);
  }

 private:
  int first_ = 0;
  std::vector<double>& exact_;
};

}  // namespace

void make_taps(const Span& span, int outputs, Filter filter, bool mirrored, Taps& taps) {
  DTRAIN_CHECK(span.low < span.high && outputs > 0 && span.extent > 0, "an axis has pixels");
  const double scale = span.extent / outputs;
  const double reach = filter == Filter::smooth ? std::max(1.0, scale) : 1.0;
  const int most = static_cast<int>(std::ceil(2 * reach));  // pixels that lie nearer than that
  taps.count = std::min((most + 1) / 2 * 2, (span.high - span.low + 1) / 2 * 2);
  if (filter == Filter::bilinear) taps.count = 2;
  taps.begin = span.high;
  taps.end = span.low;
  taps.first.assign(static_cast<std::size_t>(outputs), 0);
  taps.weight.assign(static_cast<std::size_t>(outputs) * static_cast<std::size_t>(taps.count), 0);
  std::vector<double> exact;
  for (int i = 0; i < outputs; ++i) {
    const OutputTaps output(span, span.from + (i + 0.5) * scale - 0.5, reach, most, exact);
    // So that no tap lies behind the last pixel, unless there are fewer pixels than taps.
    const int first = std::max(span.low, std::min(output.first(), span.high - taps.count));
    const auto at = static_cast<std::size_t>(mirrored ? outputs - 1 - i : i);
    taps.first[at] = first;
    output.write(
        &taps.weight[at * static_cast<std::size_t>(taps.count) + static_cast<std::size_t>(output.first() - first)]);
    taps.begin = std::min(taps.begin, first);
    taps.end = std::max(taps.end, std::min(first + taps.count, span.high));
  }
}

void to_rgbx(const std::uint8_t* pixels, int channels, int count, std::uint8_t* out) {
  const int green = channels == 3 ? 1 : 0, blue = channels == 3 ? 2 : 0;
  for (int i = 0; i < count; ++i, pixels += channels, out += kPixelBytes) {
    out[0] = pixels[0];
    out[1] = pixels[green];
    out[2] = pixels[blue];
    out[3] = 0;
  }
}

Image resize_image(const Image& image, int h, int w) {
  if (image.h == h && image.w == w) return image;
  if (static_cast<std::uint64_t>(h) * static_cast<std::uint64_t>(w) > kMaxPixels) {
    throw DataError(fmt::format(
        "{} x {} pixels resized to {} x {} are more than the {} that dtrain accepts: the picture is too thin", image.w,
        image.h, w, h, kMaxPixels));
  }
  ResampleScratch scratch;
  make_taps({0, static_cast<double>(image.w), 0, image.w}, w, Filter::smooth, false, scratch.across);
  make_taps({0, static_cast<double>(image.h), 0, image.h}, h, Filter::smooth, false, scratch.down);
  Image out{image.c, h, w,
            std::vector<std::uint8_t>(static_cast<std::size_t>(image.c) * static_cast<std::size_t>(h) *
                                      static_cast<std::size_t>(w))};
  const std::size_t row_bytes = static_cast<std::size_t>(image.w) * static_cast<std::size_t>(image.c);
  std::vector<std::uint8_t> row((static_cast<std::size_t>(image.w) + kRowSlack) * kPixelBytes);
  const std::uint8_t* from = image.pixels.data();
  std::uint8_t* to = out.pixels.data();
  const auto next_row = [&] {
    to_rgbx(from, image.c, image.w, row.data());
    from += row_bytes;
    return row.data();
  };
  resample_rows(scratch, next_row, [&](int, const std::uint8_t* pixels) {
    for (int x = 0; x < w; ++x, pixels += kPixelBytes) to = std::copy_n(pixels, image.c, to);
  });
  return out;
}

}  // namespace dtrain::data
