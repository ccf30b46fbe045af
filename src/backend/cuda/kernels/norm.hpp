// Batch norm over the rows of [rows, c]. A layer's coefficients are eight rows of c floats: see NormCoefficients.
#pragma once

#include <cmath>

#include "../../curves.hpp"
#include "sums.hpp"

namespace dtrain::backend::cuda {

struct NormCoefficients {
  float* base;
  std::int32_t c;
  static constexpr int rows = 8;
  DTRAIN_KERNEL float& mean(std::int64_t channel) const { return base[channel]; }
  DTRAIN_KERNEL float& inverse(std::int64_t channel) const { return base[c + channel]; }  // 1 / standard deviation
  DTRAIN_KERNEL float& scale(std::int64_t channel) const { return base[2 * std::int64_t{c} + channel]; }  // x gamma
  DTRAIN_KERNEL float& shift(std::int64_t channel) const { return base[3 * std::int64_t{c} + channel]; }  // beta
  // Means over the rows of the gradient, and of its product with the normalised input.
  DTRAIN_KERNEL float& gradient_mean(std::int64_t channel) const { return base[4 * std::int64_t{c} + channel]; }
  DTRAIN_KERNEL float& product_mean(std::int64_t channel) const { return base[5 * std::int64_t{c} + channel]; }
  // norm(x) = x * factor + offset, in the type of values, for who computes it so: [2][c]. Their rounding shows in such
  // values as that of the values themselves would; gradients are by the numbers above, as everywhere.
  template <typename T>
  DTRAIN_KERNEL T* factors() const {
    return reinterpret_cast<T*>(base + 6 * std::int64_t{c});
  }
};

// Sums of x - s and of its square, [part][2][c], where s is the channel's first element: near the mean, so the
// difference of squares loses little. Thread = part and Pack of channels.
template <typename T>
struct NormSums {
  const T* x;
  float* out;
  RowParts cut;
  std::int32_t c;
  using Result = PartSums<T, 2>;
  DTRAIN_KERNEL std::int32_t channels() const { return c; }
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * packs_of(c, Pack<T>::size); }
  static constexpr int kMoreAtOnce = 8;
  DTRAIN_KERNEL static void add_row(const Pack<T>& row, const Pack<T>& start, Result& sums) {
    DTRAIN_UNROLL
    for (int j = 0; j < Pack<T>::size; ++j) {
      const float value = widen(row.values[j]) - widen(start.values[j]);
      sums.values[0][j] += value;
      sums.values[1][j] = fmaf(value, value, sums.values[1][j]);
    }
  }
  DTRAIN_KERNEL Result sums_at(const ChannelsOfPart<T>& at) const {
    const Pack<T> start = at.channels.load(x, 0);
    Result sums = {};
    Pack<T> packs[kMoreAtOnce];
    for_rows<kMoreAtOnce>(
        cut, at.part, [&](int k, std::int64_t row) { packs[k] = at.channels.load(x, row); },
        [&](int k, std::int64_t) { add_row(packs[k], start, sums); });
    return sums;
  }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    sums_at(at).store(at, out);
  }
};

// Sums of x and of its square over all rows, [2][c]: by definition what a convolution leaves of its result. Thread =
// channel.
template <typename T>
struct ColumnMoments {
  const T* x;
  float* out;
  std::int64_t rows;
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return c; }
  DTRAIN_KERNEL void operator()(std::int64_t channel) const {
    double sum = 0, squares = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const double value = widen(x[row * c + channel]);
      sum += value;
      squares += value * value;
    }
    out[channel] = static_cast<float>(sum);
    out[c + channel] = static_cast<float>(squares);
  }
};

// What a norm computes with. gamma is null where it is held at 1.
struct NormParameters {
  const float* gamma;
  const float* beta;
  float epsilon;
  DTRAIN_KERNEL void set(const NormCoefficients& to, std::int64_t channel, double mean, double variance) const {
    const double inverse = 1.0 / sqrt(variance + static_cast<double>(epsilon));
    to.mean(channel) = static_cast<float>(mean);
    to.inverse(channel) = static_cast<float>(inverse);
    to.scale(channel) = static_cast<float>((gamma ? static_cast<double>(gamma[channel]) : 1.0) * inverse);
    to.shift(channel) = beta[channel];
  }
};

// From the folded sums to coefficients, and the shard's part of the batch statistics: mean and biased variance, times
// its samples, or of one row the running variance. Where x is null, the sums are of x and not of x - s. Thread =
// channel.
template <typename T>
struct NormFromBatch {
  const float* sums;
  const T* x;
  RowParts cut;
  NormParameters parameters;
  NormCoefficients coefficients;
  float* mean_out;
  float* variance_out;
  float samples;
  const float* running_variance = nullptr;  // null: not of one row
  DTRAIN_KERNEL std::int64_t threads() const { return coefficients.c; }
  DTRAIN_KERNEL void finish(std::int64_t channel, const double (&totals)[2]) const {
    const std::int32_t c = coefficients.c;
    const auto rows = static_cast<double>(cut.rows);
    const double first = totals[0] / rows, second = totals[1] / rows;
    const double mean = (x ? widen(x[channel]) : 0.0f) + first;
    double variance = fma(-first, first, second);
    if (variance < 0) variance = 0;
    parameters.set(coefficients, channel, mean, variance);
    const float scale = coefficients.scale(channel);
    narrow(scale, coefficients.factors<T>()[channel]);
    narrow(fmaf(-coefficients.mean(channel), scale, coefficients.shift(channel)),
           coefficients.factors<T>()[c + channel]);
    mean_out[channel] = static_cast<float>(mean) * samples;
    const bool is_known = running_variance && cut.rows == 1;
    variance_out[channel] = (is_known ? running_variance[channel] : static_cast<float>(variance)) * samples;
  }
  DTRAIN_KERNEL void operator()(std::int64_t channel) const {
    const std::int32_t c = coefficients.c;
    finish(channel, {sum_of_parts(sums, cut.folded_parts, 2 * c, channel),
                     sum_of_parts(sums, cut.folded_parts, 2 * c, c + channel)});
  }
};
template <typename T>
using NormStatistics = FoldedSums<NormSums<T>, NormFromBatch<T>>;

// From the running statistics. Thread = channel.
struct NormFromRunning {
  const float* mean;
  const float* variance;
  NormParameters parameters;
  NormCoefficients coefficients;
  DTRAIN_KERNEL std::int64_t threads() const { return coefficients.c; }
  DTRAIN_KERNEL void operator()(std::int64_t channel) const {
    parameters.set(coefficients, channel, mean[channel], variance[channel]);
  }
};

// The same for a norm that does not learn, in training: with no means of the gradient, since the statistics are no
// function of x, and with nothing added to the running statistics. Thread = channel.
template <typename T>
struct NormFixed {
  NormFromRunning running;
  float* mean_out;
  float* variance_out;
  DTRAIN_KERNEL std::int64_t threads() const { return running.threads(); }
  DTRAIN_KERNEL void operator()(std::int64_t channel) const {
    running(channel);
    const NormCoefficients& to = running.coefficients;
    const float scale = to.scale(channel);
    narrow(scale, to.factors<T>()[channel]);
    narrow(to.shift(channel) - to.mean(channel) * scale, to.factors<T>()[to.c + channel]);
    to.gradient_mean(channel) = to.product_mean(channel) = 0;
    mean_out[channel] = variance_out[channel] = 0;
  }
};

// What forward computes a channel's values with.
template <int Size>
struct NormLines {
  float mean[Size], scale[Size], shift[Size];
  // norm(x).
  DTRAIN_KERNEL float at(int k, float x) const { return fmaf(x - mean[k], scale[k], shift[k]); }
};

template <typename T, bool Whole>
DTRAIN_KERNEL NormLines<Pack<T>::size> load_lines(const NormCoefficients& from, const Channels<T, Whole>& channels) {
  NormLines<Pack<T>::size> lines;
  channels.load_words(&from.mean(0), lines.mean);
  channels.load_words(&from.scale(0), lines.scale);
  channels.load_words(&from.shift(0), lines.shift);
  return lines;
}

// Whether a ReLU lets a value pass, as it is stored.
template <typename T>
DTRAIN_KERNEL bool passes(float value) {
  T stored;
  narrow(value, stored);
  return widen(stored) > 0;
}

// A few rows for each thread of a kernel that writes as many values as it reads; what it reads of kAtOnce of them is
// under way at the same time.
constexpr int kFewRows = 8, kAtOnce = 2;
inline RowParts few_rows(std::int64_t rows) {
  return {.rows = rows, .parts = static_cast<std::int32_t>(packs_of(rows, kFewRows))};
}

// y = relu(norm(x) + residual), or gelu instead of relu; residual may be null, or what another norm has yet to be
// computed of. `passed` (may be null) takes what the ReLU lets pass: a byte for each Pack of channels of each row, a
// bit for each of its values. Thread = Pack of channels in a few rows.
template <typename T, bool Gelu = false, bool NormsResidual = false>
struct NormApply {
  const T* x;
  const T* residual;
  NormCoefficients residual_norm;  // where NormsResidual
  T* y;
  std::uint8_t* passed;
  NormCoefficients coefficients;
  RowParts cut;
  bool relu;
  using Lines = NormLines<Pack<T>::size>;
  DTRAIN_KERNEL std::int64_t packs() const { return packs_of(coefficients.c, Pack<T>::size); }
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * packs(); }
  template <bool Whole>
  DTRAIN_KERNEL Lines residual_lines(const Channels<T, Whole>& channels) const {
    if constexpr (NormsResidual) return load_lines(residual_norm, channels);
    return {};
  }
  // `other`, of the residual: counts only where there is one.
  template <bool Whole>
  DTRAIN_KERNEL void make_row(Pack<T> input, const Pack<T>& other, const Lines& lines, const Lines& other_lines,
                              const ChannelsOfPart<T, Whole>& at, std::int64_t row) const {
    unsigned bits = 0;
    DTRAIN_UNROLL
    for (int j = 0; j < Pack<T>::size; ++j) {
      float value = lines.at(j, widen(input.values[j]));
      if constexpr (NormsResidual) {
        value += other_lines.at(j, widen(other.values[j]));
      } else if (residual) {
        value += widen(other.values[j]);
      }
      if (relu && value < 0) value = 0;
      if constexpr (Gelu) value = gelu(value);
      narrow(value, input.values[j]);
      bits |= unsigned{widen(input.values[j]) > 0} << j;
    }
    at.channels.store(input, y, row);
    if (passed) passed[row * packs() + at.pack] = static_cast<std::uint8_t>(bits);
  }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, coefficients.c);
    const Lines lines = load_lines(coefficients, at.channels), other_lines = residual_lines(at.channels);
    Pack<T> inputs[kAtOnce], others[kAtOnce];
    for_rows<kAtOnce>(
        cut, at.part,
        [&](int k, std::int64_t row) {
          inputs[k] = at.channels.load(x, row);
          if (residual) others[k] = at.channels.load(residual, row);
        },
        [&](int k, std::int64_t row) { make_row(inputs[k], others[k], lines, other_lines, at, row); });
  }
};

// A norm of a training step: by definition its statistics, then what is made with them. A native kernel (gpu/native)
// keeps x on the chip between the two.
template <typename T, bool Gelu = false, bool NormsResidual = false>
struct NormForward {
  NormStatistics<T> statistics;
  NormApply<T, Gelu, NormsResidual> apply;
};

// y = relu(x * factor + offset), with [2][c] of these: by definition what a convolution does to what it reads where a
// norm's output is not written at all. Thread = Pack of channels in a few rows.
template <typename T>
struct ScaleShiftRelu {
  const T* x;
  const T* factors;
  T* y;
  RowParts cut;
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const Pack<T> factor = at.channels.load(factors, 0), offset = at.channels.load(factors, 1);
    Pack<T> packs[kAtOnce];
    for_rows<kAtOnce>(
        cut, at.part, [&](int k, std::int64_t row) { packs[k] = at.channels.load(x, row); },
        [&](int k, std::int64_t row) {
          DTRAIN_UNROLL
          for (int j = 0; j < Pack<T>::size; ++j) {
            const float value = fmaf(widen(packs[k].values[j]), widen(factor.values[j]), widen(offset.values[j]));
            narrow(value < 0 ? 0.0f : value, packs[k].values[j]);
          }
          at.channels.store(packs[k], y, row);
        });
  }
};

}  // namespace dtrain::backend::cuda
