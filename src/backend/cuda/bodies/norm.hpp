// Batch norm over the rows of [rows, c]. A layer's coefficients are six rows of c floats: see NormCoefficients.
#pragma once

#include <cmath>

#include "sums.hpp"

namespace dtrain::backend::cuda {

struct NormCoefficients {
  float* base;
  std::int32_t c;
  static constexpr int rows = 6;
  DTRAIN_BODY float& mean(std::int64_t channel) const { return base[channel]; }
  DTRAIN_BODY float& inverse(std::int64_t channel) const { return base[c + channel]; }  // 1 / standard deviation
  DTRAIN_BODY float& scale(std::int64_t channel) const { return base[2 * std::int64_t{c} + channel]; }  // x gamma
  DTRAIN_BODY float& shift(std::int64_t channel) const { return base[3 * std::int64_t{c} + channel]; }  // beta
  // Of the gradient, and of its product with the normalised input: means over the rows.
  DTRAIN_BODY float& gradient_mean(std::int64_t channel) const { return base[4 * std::int64_t{c} + channel]; }
  DTRAIN_BODY float& product_mean(std::int64_t channel) const { return base[5 * std::int64_t{c} + channel]; }
};

// Sums of x - s and of its square, [part][2][c], where s is the channel's first element: near the mean, so the
// difference of squares loses little.
template <typename T>
struct NormSums {
  const T* x;
  float* out;
  RowParts cut;
  std::int32_t c;
  DTRAIN_BODY std::int64_t threads() const { return std::int64_t{cut.parts} * c; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const std::int64_t part = i / c, channel = i % c;
    const float start = widen(x[channel]);
    float sum = 0, squares = 0;
    for (std::int64_t row = cut.first(part); row < cut.end(part); ++row) {
      const float value = widen(x[row * c + channel]) - start;
      sum += value;
      squares += value * value;
    }
    out[part * 2 * c + channel] = sum;
    out[part * 2 * c + c + channel] = squares;
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
  DTRAIN_BODY std::int64_t threads() const { return c; }
  DTRAIN_BODY void operator()(std::int64_t channel) const {
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
  DTRAIN_BODY void set(const NormCoefficients& to, std::int64_t channel, double mean, double variance) const {
    const double inverse = 1.0 / sqrt(variance + static_cast<double>(epsilon));
    to.mean(channel) = static_cast<float>(mean);
    to.inverse(channel) = static_cast<float>(inverse);
    to.scale(channel) = static_cast<float>((gamma ? static_cast<double>(gamma[channel]) : 1.0) * inverse);
    to.shift(channel) = beta[channel];
  }
};

// From the folded sums to coefficients, and the shard's part of the batch statistics: mean and biased variance, times
// its samples. Where x is null, the sums are of x and not of x - s. Thread = channel.
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
  DTRAIN_BODY std::int64_t threads() const { return coefficients.c; }
  DTRAIN_BODY void operator()(std::int64_t channel) const {
    const std::int32_t c = coefficients.c;
    const auto rows = static_cast<double>(cut.rows);
    const double first = sum_of_parts(sums, cut.folded_parts, 2 * c, channel) / rows;
    const double second = sum_of_parts(sums, cut.folded_parts, 2 * c, c + channel) / rows;
    const double mean = (x ? widen(x[channel]) : 0.0f) + first;
    double variance = second - first * first;
    if (variance < 0) variance = 0;
    parameters.set(coefficients, channel, mean, variance);
    mean_out[channel] = static_cast<float>(mean) * samples;
    variance_out[channel] = static_cast<float>(variance) * samples;
  }
};

// From the running statistics. Thread = channel.
struct NormFromRunning {
  const float* mean;
  const float* variance;
  NormParameters parameters;
  NormCoefficients coefficients;
  DTRAIN_BODY std::int64_t threads() const { return coefficients.c; }
  DTRAIN_BODY void operator()(std::int64_t channel) const {
    parameters.set(coefficients, channel, mean[channel], variance[channel]);
  }
};

// norm(x), by one rounding that no compiler may part in two: so backward finds the very number that forward found.
DTRAIN_BODY inline float norm_of(float x, const NormCoefficients& by, std::int64_t channel) {
  return fmaf(x - by.mean(channel), by.scale(channel), by.shift(channel));
}

// Whether a ReLU lets a value pass, as it is stored.
template <typename T>
DTRAIN_BODY bool passes(float value) {
  T stored;
  narrow(value, stored);
  return widen(stored) > 0;
}

// y = relu(norm(x) + residual); residual may be null. `passed` (may be null) takes what the ReLU lets pass: a byte for
// each Pack, a bit for each of its values. Thread = Pack.
template <typename T>
struct NormApply {
  const T* x;
  const T* residual;
  T* y;
  std::uint8_t* passed;
  NormCoefficients coefficients;
  std::int64_t total;
  bool relu;
  DTRAIN_BODY std::int64_t threads() const { return packs_of(total, Pack<T>::size); }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<T>::size;
    Pack<T> pack = load_pack(x, first, total);
    const Pack<T> more = residual ? load_pack(residual, first, total) : Pack<T>{};
    std::int64_t channel = first % coefficients.c;
    unsigned bits = 0;
    for (int k = 0; k < Pack<T>::size; ++k) {
      float value = norm_of(widen(pack.values[k]), coefficients, channel);
      if (residual) value += widen(more.values[k]);
      bits |= unsigned{passes<T>(value)} << k;
      if (relu && value < 0) value = 0;
      narrow(value, pack.values[k]);
      if (++channel == coefficients.c) channel = 0;
    }
    store_pack(pack, y, first, total);
    if (passed) passed[i] = static_cast<std::uint8_t>(bits);
  }
};

// What reaches a norm's output from behind: one or two parts (dy2 may be null), through a ReLU where one follows. What
// that let pass says `passed` of NormApply; where it was not kept, x, since nothing was added to norm(x).
template <typename T>
struct NormIncoming {
  const T* dy;
  const T* dy2;
  const std::uint8_t* passed;
  bool relu;
  // By norm(x), given element e.
  DTRAIN_BODY float gradient(std::int64_t e, float x, const NormCoefficients& by, std::int64_t channel) const {
    float sum = widen(dy[e]);
    if (dy2) sum += widen(dy2[e]);
    if (!relu) return sum;
    const bool open =
        passed ? (passed[e / Pack<T>::size] >> (e % Pack<T>::size) & 1) != 0 : passes<T>(norm_of(x, by, channel));
    return open ? sum : 0.0f;
  }
};

// Sums of the gradient, and of its product with the normalised input: [part][2][c]. `kept` (may be null) takes the
// gradient as it is stored, and the sums are of what is stored: whoever reads it later reads one tensor for all of
// `incoming`, and the means of it are taken from it.
template <typename T>
struct NormGradientSums {
  NormIncoming<T> incoming;
  const T* x;
  T* kept;
  float* out;
  RowParts cut;
  NormCoefficients coefficients;
  DTRAIN_BODY std::int64_t threads() const { return std::int64_t{cut.parts} * coefficients.c; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const std::int32_t c = coefficients.c;
    const std::int64_t part = i / c, channel = i % c;
    const float mean = coefficients.mean(channel), inverse = coefficients.inverse(channel);
    float sum = 0, products = 0;
    for (std::int64_t row = cut.first(part); row < cut.end(part); ++row) {
      const std::int64_t e = row * c + channel;
      const float input = widen(x[e]);
      float gradient = incoming.gradient(e, input, coefficients, channel);
      if (kept) {
        narrow(gradient, kept[e]);
        gradient = widen(kept[e]);
      }
      sum += gradient;
      products += gradient * ((input - mean) * inverse);
    }
    out[part * 2 * c + channel] = sum;
    out[part * 2 * c + c + channel] = products;
  }
};

// From the folded sums to dgamma (null where gamma is held), dbeta and the means that NormGradient needs.
struct NormGradientFinish {
  const float* sums;
  RowParts cut;
  NormCoefficients coefficients;
  float* dgamma;
  float* dbeta;
  DTRAIN_BODY std::int64_t threads() const { return coefficients.c; }
  DTRAIN_BODY void operator()(std::int64_t channel) const {
    const std::int32_t c = coefficients.c;
    const double sum = sum_of_parts(sums, cut.folded_parts, 2 * c, channel);
    const double products = sum_of_parts(sums, cut.folded_parts, 2 * c, c + channel);
    coefficients.gradient_mean(channel) = static_cast<float>(sum / static_cast<double>(cut.rows));
    coefficients.product_mean(channel) = static_cast<float>(products / static_cast<double>(cut.rows));
    if (dgamma) dgamma[channel] = static_cast<float>(products);
    dbeta[channel] = static_cast<float>(sum);
  }
};

// dx, plus `addend` (may be null). Thread = Pack.
template <typename T>
struct NormGradient {
  NormIncoming<T> incoming;
  const T* x;
  const T* addend;
  T* dx;
  NormCoefficients coefficients;
  std::int64_t total;
  DTRAIN_BODY std::int64_t threads() const { return packs_of(total, Pack<T>::size); }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<T>::size;
    const Pack<T> input = load_pack(x, first, total);
    const Pack<T> more = addend ? load_pack(addend, first, total) : Pack<T>{};
    Pack<T> result{};
    std::int64_t channel = first % coefficients.c;
    for (int k = 0; k < Pack<T>::size && first + k < total; ++k) {
      const float value = widen(input.values[k]);
      const float gradient = incoming.gradient(first + k, value, coefficients, channel);
      const float normal = (value - coefficients.mean(channel)) * coefficients.inverse(channel);
      const float of_means = coefficients.gradient_mean(channel) + normal * coefficients.product_mean(channel);
      float sum = coefficients.scale(channel) * (gradient - of_means);
      if (addend) sum += widen(more.values[k]);
      narrow(sum, result.values[k]);
      if (++channel == coefficients.c) channel = 0;
    }
    store_pack(result, dx, first, total);
  }
};

}  // namespace dtrain::backend::cuda
