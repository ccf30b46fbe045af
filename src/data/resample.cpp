#include "resample.hpp"

#include <algorithm>
#include <cmath>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <dtrain/base/error.hpp>

namespace dtrain::data {
namespace {

constexpr int kOne = 1 << kWeightBits, kHalf = kOne / 2;

// The weights of one output in double, then as whole numbers; what rounding lost goes to the largest.
class OutputTaps {
 public:
  // `exact` is memory that is used again.
  OutputTaps(const Span& span, double centre, double reach, std::vector<double>& exact) : exact_(exact) {
    exact_.clear();
    first_ = std::max(span.low, static_cast<int>(std::floor(centre - reach)) + 1);
    const int last = std::min(span.high - 1, static_cast<int>(std::ceil(centre + reach)) - 1);
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

inline std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>((sum + kHalf) >> kWeightBits); }

#ifdef __SSE2__

// Two pixels beside each other to r0 r1 g0 g1 b0 b1 x0 x1 as 16-bit numbers.
inline __m128i paired(const std::uint8_t* pixels) {
  const __m128i both = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pixels));
  return _mm_unpacklo_epi8(_mm_unpacklo_epi8(both, _mm_srli_epi64(both, 32)), _mm_setzero_si128());
}

inline __m128i weight_pair(const std::int16_t* weight) {
  return _mm_set1_epi32(static_cast<std::uint16_t>(weight[0]) |
                        static_cast<int>(static_cast<unsigned>(static_cast<std::uint16_t>(weight[1])) << 16));
}

inline void across_pixel(const std::uint8_t* from, const std::int16_t* weight, int count, std::uint8_t* out) {
  __m128i sum = _mm_set1_epi32(kHalf);
  for (int k = 0; k < count; k += 2) {
    sum = _mm_add_epi32(sum, _mm_madd_epi16(paired(from + k * kPixelBytes), weight_pair(weight + k)));
  }
  const __m128i words = _mm_packs_epi32(_mm_srli_epi32(sum, kWeightBits), _mm_setzero_si128());
  const int pixel = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&pixel), kPixelBytes, out);
}

// 16 bytes of each row.
inline void down_bytes(const std::uint8_t* const* rows, const std::int16_t* weight, int count, int at,
                       std::uint8_t* out) {
  const __m128i zero = _mm_setzero_si128();
  __m128i sum[4];
  std::fill_n(sum, 4, _mm_set1_epi32(kHalf));
  for (int k = 0; k < count; k += 2) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[k] + at));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[k + 1] + at));
    const __m128i low = _mm_unpacklo_epi8(a, b), high = _mm_unpackhi_epi8(a, b), pair = weight_pair(weight + k);
    sum[0] = _mm_add_epi32(sum[0], _mm_madd_epi16(_mm_unpacklo_epi8(low, zero), pair));
    sum[1] = _mm_add_epi32(sum[1], _mm_madd_epi16(_mm_unpackhi_epi8(low, zero), pair));
    sum[2] = _mm_add_epi32(sum[2], _mm_madd_epi16(_mm_unpacklo_epi8(high, zero), pair));
    sum[3] = _mm_add_epi32(sum[3], _mm_madd_epi16(_mm_unpackhi_epi8(high, zero), pair));
  }
  for (__m128i& each : sum) each = _mm_srli_epi32(each, kWeightBits);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out + at),
                   _mm_packus_epi16(_mm_packs_epi32(sum[0], sum[1]), _mm_packs_epi32(sum[2], sum[3])));
}

#else

inline void across_pixel(const std::uint8_t* from, const std::int16_t* weight, int count, std::uint8_t* out) {
  for (int c = 0; c < kPixelBytes; ++c) {
    std::int32_t sum = 0;
    for (int k = 0; k < count; ++k) sum += weight[k] * from[k * kPixelBytes + c];
    out[c] = rounded(sum);
  }
}

#endif

}  // namespace

void make_taps(const Span& span, int outputs, Filter filter, bool mirrored, Taps& taps) {
  DTRAIN_CHECK(span.low < span.high && outputs > 0 && span.extent > 0, "an axis has pixels");
  const double scale = span.extent / outputs;
  const double reach = filter == Filter::smooth ? std::max(1.0, scale) : 1.0;
  const int most = static_cast<int>(std::ceil(2 * reach)) + 1;
  taps.count = std::min((most + 1) / 2 * 2, (span.high - span.low + 1) / 2 * 2);
  if (filter == Filter::bilinear) taps.count = 2;
  taps.begin = span.high;
  taps.end = span.low;
  taps.first.assign(static_cast<std::size_t>(outputs), 0);
  taps.weight.assign(static_cast<std::size_t>(outputs) * static_cast<std::size_t>(taps.count), 0);
  std::vector<double> exact;
  for (int i = 0; i < outputs; ++i) {
    const OutputTaps output(span, span.from + (i + 0.5) * scale - 0.5, reach, exact);
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

void resample_across(const std::uint8_t* row, const Taps& across, std::uint8_t* out) {
  const std::int16_t* weight = across.weight.data();
  for (const int first : across.first) {
    across_pixel(row + std::ptrdiff_t{first} * kPixelBytes, weight, across.count, out);
    weight += across.count;
    out += kPixelBytes;
  }
}

void resample_down(const std::uint8_t* const* rows, const std::int16_t* weight, int count, int bytes,
                   std::uint8_t* out) {
  int at = 0;
#ifdef __SSE2__
  for (; at + 16 <= bytes; at += 16) down_bytes(rows, weight, count, at, out);
#endif
  for (; at < bytes; ++at) {
    std::int32_t sum = 0;
    for (int k = 0; k < count; ++k) sum += weight[k] * rows[k][at];
    out[at] = rounded(sum);
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
