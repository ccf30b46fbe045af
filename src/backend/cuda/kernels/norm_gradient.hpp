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
  DTRAIN_KERNEL Read read(const ChannelsOfPart<T>& at, std::int64_t row) const {
    Read read;
    read.dy = at.channels.load(dy, row);
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
  DTRAIN_KERNEL Result sums_at(const ChannelsOfPart<T>& at) const {
    const auto lines = load_lines(coefficients, at.channels);
    Result sums = {};
    typename NormIncoming<T, Gelu>::Read behind[kAtOnce];
    Pack<T> inputs[kAtOnce];
    for_rows<kAtOnce>(
        cut, at.part,
        [&](int k, std::int64_t row) {
          behind[k] = incoming.read(at, row);
          inputs[k] = at.channels.load(x, row);
        },
        [&](int k, std::int64_t row) {
          Pack<T> stored;
          DTRAIN_UNROLL
          for (int j = 0; j < Pack<T>::size; ++j) {
            const float input = widen(inputs[k].values[j]);
            float gradient = incoming.gradient(behind[k], j, input, lines);
            narrow(gradient, stored.values[j]);
            if (kept) gradient = widen(stored.values[j]);
            sums.values[0][j] += gradient;
            sums.values[1][j] += gradient * (input - lines.mean[j]);
          }
          if (kept) at.channels.store(stored, kept, row);
        });
    float inverse[Pack<T>::size];
    at.channels.load_words(&coefficients.inverse(0), inverse);
    DTRAIN_UNROLL
    for (int j = 0; j < Pack<T>::size; ++j) sums.values[1][j] *= inverse[j];
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
  // The gradient by x, given that by norm(x).
  DTRAIN_KERNEL float at(int k, float gradient, float x, const NormLines<Size>& lines) const {
    const float of_means = mean[k] + (x - lines.mean[k]) * slope[k];
    return lines.scale[k] * (gradient - of_means);
  }
};

template <typename T>
DTRAIN_KERNEL NormGradientLines<Pack<T>::size> load_gradient_lines(const NormCoefficients& from,
                                                                   const Channels<T>& channels) {
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
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * packs_of(coefficients.c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, coefficients.c);
    const auto lines = load_lines(coefficients, at.channels);
    const auto gradient_lines = load_gradient_lines(coefficients, at.channels);
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
          DTRAIN_UNROLL
          for (int j = 0; j < Pack<T>::size; ++j) {
            const float input = widen(inputs[k].values[j]);
            const float gradient = incoming.gradient(behind[k], j, input, lines);
            float value = gradient_lines.at(j, gradient, input, lines);
            if (addend) value += widen(others[k].values[j]);
            narrow(value, inputs[k].values[j]);
          }
          at.channels.store(inputs[k], dx, row);
        });
  }
};

}  // namespace dtrain::backend::cuda
