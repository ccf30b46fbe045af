// Backward of a batch norm: what reaches its output from behind, the sums of that, and the gradient by its input.
#pragma once

#include "norm.hpp"

namespace dtrain::backend::cuda {

// What reaches a norm's output from behind: one or two parts (dy2 may be null), through a ReLU where one follows. What
// that let pass says `passed` of NormApply; where it was not kept, x, since nothing was added to norm(x). Or through a
// GELU, whose slope is by norm(x).
template <typename T, bool Gelu = false>
struct NormIncoming {
  const T* dy;
  const T* dy2;
  const std::uint8_t* passed;
  bool relu;
  struct Read {
    Pack<T> dy, dy2;
    unsigned bits;
  };
  template <bool Whole>
  DTRAIN_KERNEL Read read(const ChannelsOfPart<T, Whole>& at, std::int64_t row) const {
    return read(at, row, at.channels.load(dy, row));
  }
  // The same, where a thread has that of dy.
  template <bool Whole>
  DTRAIN_KERNEL Read read(const ChannelsOfPart<T, Whole>& at, std::int64_t row, const Pack<T>& of_dy) const {
    Read read;
    read.dy = of_dy;
    if (dy2) read.dy2 = at.channels.load(dy2, row);
    if (passed) read.bits = passed[row * packs_of(at.channels.c, Pack<T>::size) + at.pack];
    return read;
  }
  // The gradient by norm(x), given x.
  DTRAIN_KERNEL float gradient(const Read& read, int k, float x, const NormLines<Pack<T>::size>& lines) const {
    float sum = widen(read.dy.values[k]);
    if (dy2) sum += widen(read.dy2.values[k]);
    if constexpr (Gelu) return sum * gelu_slope(lines.at(k, x));
    if (!relu) return sum;
    return (passed ? (read.bits >> k & 1) != 0 : passes<T>(lines.at(k, x))) ? sum : 0.0f;
  }
};

// Sums of the gradient, and of its product with the normalised input: [part][2][c]. `kept` (may be null) takes the
// gradient as it is stored, and the sums are of what is stored: a later kernel reads one tensor for all of
// `incoming`, and the means of it are taken from it. Thread = part and Pack of channels.
template <typename T, bool Gelu = false>
struct NormGradientSums {
  NormIncoming<T, Gelu> incoming;
  const T* x;
  T* kept;
  float* out;
  RowParts cut;
  NormCoefficients coefficients;
  using Result = PartSums<T, 2>;
  DTRAIN_KERNEL std::int32_t channels() const { return coefficients.c; }
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * packs_of(coefficients.c, Pack<T>::size); }
  using Lines = NormLines<Pack<T>::size>;
  using Read = typename NormIncoming<T, Gelu>::Read;
  // Returns the gradient as it is stored.
  DTRAIN_KERNEL Pack<T> add_row(const Read& behind, const Pack<T>& inputs, const Lines& lines, Result& sums) const {
    Pack<T> stored;
    DTRAIN_UNROLL
    for (int j = 0; j < Pack<T>::size; ++j) {
      const float input = widen(inputs.values[j]);
      float gradient = incoming.gradient(behind, j, input, lines);
      narrow(gradient, stored.values[j]);
      if (kept) gradient = widen(stored.values[j]);
      sums.values[0][j] += gradient;
      sums.values[1][j] = fmaf(gradient, input - lines.mean[j], sums.values[1][j]);
    }
    return stored;
  }
  template <bool Whole>
  DTRAIN_KERNEL void finish_sums(const Channels<T, Whole>& channels, Result& sums) const {
    float inverse[Pack<T>::size];
    channels.load_words(&coefficients.inverse(0), inverse);
    DTRAIN_UNROLL
    for (int j = 0; j < Pack<T>::size; ++j) sums.values[1][j] *= inverse[j];
  }
  DTRAIN_KERNEL Result sums_at(const ChannelsOfPart<T>& at) const {
    const Lines lines = load_lines(coefficients, at.channels);
    Result sums = {};
    Read behind[kAtOnce];
    Pack<T> inputs[kAtOnce];
    for_rows<kAtOnce>(
        cut, at.part,
        [&](int k, std::int64_t row) {
          behind[k] = incoming.read(at, row);
          inputs[k] = at.channels.load(x, row);
        },
        [&](int k, std::int64_t row) {
          const Pack<T> stored = add_row(behind[k], inputs[k], lines, sums);
          if (kept) at.channels.store(stored, kept, row);
        });
    finish_sums(at.channels, sums);
    return sums;
  }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, coefficients.c);
    sums_at(at).store(at, out);
  }
};

// From the folded sums to dgamma, dbeta (null where they are held) and the means that NormGradient needs.
struct NormGradientFinish {
  const float* sums;
  RowParts cut;
  std::int64_t rows;  // that the means are over: of x, which may be more than have a gradient
  NormCoefficients coefficients;
  float* dgamma;
  float* dbeta;
  DTRAIN_KERNEL std::int64_t threads() const { return coefficients.c; }
  DTRAIN_KERNEL void finish(std::int64_t channel, const double (&totals)[2]) const {
    const double sum = totals[0], products = totals[1];
    coefficients.gradient_mean(channel) = static_cast<float>(sum / static_cast<double>(rows));
    coefficients.product_mean(channel) = static_cast<float>(products / static_cast<double>(rows));
    if (dgamma) dgamma[channel] = static_cast<float>(products);
    if (dbeta) dbeta[channel] = static_cast<float>(sum);
  }
  DTRAIN_KERNEL void operator()(std::int64_t channel) const {
    const std::int32_t c = coefficients.c;
    finish(channel, {sum_of_parts(sums, cut.folded_parts, 2 * c, channel),
                     sum_of_parts(sums, cut.folded_parts, 2 * c, c + channel)});
  }
};
template <typename T, bool Gelu = false>
using NormGradientTotals = FoldedSums<NormGradientSums<T, Gelu>, NormGradientFinish>;

// What backward computes a channel's values with, beside what forward did.
template <int Size>
struct NormGradientLines {
  float mean[Size], slope[Size];  // of the gradient; of what of it is by x
  // The gradient by x, given that by norm(x), and what reaches x on another way.
  DTRAIN_KERNEL float at(int k, float gradient, float x, const NormLines<Size>& lines, float other) const {
    const float of_means = fmaf(x - lines.mean[k], slope[k], mean[k]);
    return fmaf(lines.scale[k], gradient - of_means, other);
  }
};

template <typename T, bool Whole>
DTRAIN_KERNEL NormGradientLines<Pack<T>::size> load_gradient_lines(const NormCoefficients& from,
                                                                   const Channels<T, Whole>& channels) {
  NormGradientLines<Pack<T>::size> lines;
  float inverse[Pack<T>::size];
  channels.load_words(&from.gradient_mean(0), lines.mean);
  channels.load_words(&from.product_mean(0), lines.slope);
  channels.load_words(&from.inverse(0), inverse);
  DTRAIN_UNROLL
  for (int k = 0; k < Pack<T>::size; ++k) lines.slope[k] *= inverse[k];
  return lines;
}

// dx, plus `addend` (may be null). Thread = Pack of channels in a few rows.
template <typename T>
struct NormGradient {
  NormIncoming<T> incoming;
  const T* x;
  const T* addend;
  T* dx;
  NormCoefficients coefficients;
  RowParts cut;
  using Lines = NormLines<Pack<T>::size>;
  using GradientLines = NormGradientLines<Pack<T>::size>;
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * packs_of(coefficients.c, Pack<T>::size); }
  // gradient(j, x): by the j-th norm(x) of the row. `row`: x, of which it makes dx. `other`, of the addend: counts only
  // where there is one.
  template <typename Channels, typename Gradient>
  DTRAIN_KERNEL void make_row(Gradient gradient, Pack<T>& row, const Pack<T>& other, const Lines& lines,
                              const GradientLines& gradient_lines, const Channels& channels, std::int64_t place) const {
    DTRAIN_UNROLL
    for (int j = 0; j < Pack<T>::size; ++j) {
      const float input = widen(row.values[j]);
      float value = gradient_lines.at(j, gradient(j, input), input, lines, 0.0f);
      if (addend) value += widen(other.values[j]);
      narrow(value, row.values[j]);
    }
    channels.store(row, dx, place);
  }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, coefficients.c);
    const Lines lines = load_lines(coefficients, at.channels);
    const GradientLines gradient_lines = load_gradient_lines(coefficients, at.channels);
    typename NormIncoming<T>::Read behind[kAtOnce];
    Pack<T> inputs[kAtOnce], others[kAtOnce];
    for_rows<kAtOnce>(
        cut, at.part,
        [&](int k, std::int64_t row) {
          behind[k] = incoming.read(at, row);
          inputs[k] = at.channels.load(x, row);
          if (addend) others[k] = at.channels.load(addend, row);
        },
        [&](int k, std::int64_t row) {
          make_row([&](int j, float input) { return incoming.gradient(behind[k], j, input, lines); }, inputs[k],
                   others[k], lines, gradient_lines, at.channels, row);
        });
  }
};

// Backward of a norm: by definition the totals of its gradient, then dx with their means. A native kernel (gpu/native)
// keeps x and the gradient on the chip between the two.
template <typename T, bool Gelu = false>
struct NormBackward {
  NormGradientTotals<T, Gelu> totals;
  NormGradient<T> gradient;
};

}  // namespace dtrain::backend::cuda
