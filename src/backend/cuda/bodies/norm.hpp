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

// y = relu(norm(x) + residual); residual may be null. Thread = Pack.
template <typename T>
struct NormApply {
  const T* x;
  const T* residual;
  T* y;
  NormCoefficients coefficients;
  std::int64_t total;
  bool relu;
  DTRAIN_BODY std::int64_t threads() const { return packs_of(total, Pack<T>::size); }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<T>::size;
    Pack<T> pack = load_pack(x, first, total);
    const Pack<T> more = residual ? load_pack(residual, first, total) : Pack<T>{};
    std::int64_t channel = first % coefficients.c;
    for (int k = 0; k < Pack<T>::size; ++k) {
      float value = (widen(pack.values[k]) - coefficients.mean(channel)) * coefficients.scale(channel) +
                    coefficients.shift(channel);
      if (residual) value += widen(more.values[k]);
      if (relu && value < 0) value = 0;
      narrow(value, pack.values[k]);
      if (++channel == coefficients.c) channel = 0;
    }
    store_pack(pack, y, first, total);
  }
};

// What reaches a norm's output from behind: one or two parts (dy2 may be null), and the output where a ReLU follows
// (null: none).
template <typename T>
struct NormIncoming {
  const T* dy;
  const T* dy2;
  const T* y;
};

// Sums of the gradient, and of its product with the normalised input: [part][2][c].
template <typename T>
struct NormGradientSums {
  NormIncoming<T> incoming;
  const T* x;
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
      float gradient = widen(incoming.dy[e]);
      if (incoming.dy2) gradient += widen(incoming.dy2[e]);
      if (incoming.y && !(widen(incoming.y[e]) > 0)) gradient = 0;
      sum += gradient;
      products += gradient * ((widen(x[e]) - mean) * inverse);
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

// dx, plus `addend` (may be null); and the gradient behind the ReLU, which is the residual's. dx or masked may be null.
template <typename T>
struct NormGradient {
  NormIncoming<T> incoming;
  const T* x;
  const T* addend;
  T* dx;
  T* masked;
  NormCoefficients coefficients;
  std::int64_t total;
  DTRAIN_BODY std::int64_t threads() const { return packs_of(total, Pack<T>::size); }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<T>::size;
    Pack<T> gradient = load_pack(incoming.dy, first, total);
    const Pack<T> second = incoming.dy2 ? load_pack(incoming.dy2, first, total) : Pack<T>{};
    const Pack<T> output = incoming.y ? load_pack(incoming.y, first, total) : Pack<T>{};
    const Pack<T> input = load_pack(x, first, total);
    const Pack<T> more = addend ? load_pack(addend, first, total) : Pack<T>{};
    Pack<T> result;
    std::int64_t channel = first % coefficients.c;
    for (int k = 0; k < Pack<T>::size; ++k) {
      float g = widen(gradient.values[k]);
      if (incoming.dy2) g += widen(second.values[k]);
      if (incoming.y && !(widen(output.values[k]) > 0)) g = 0;
      narrow(g, gradient.values[k]);
      const float normal = (widen(input.values[k]) - coefficients.mean(channel)) * coefficients.inverse(channel);
      const float gradient_of_mean = coefficients.gradient_mean(channel) + normal * coefficients.product_mean(channel);
      float value = coefficients.scale(channel) * (g - gradient_of_mean);
      if (addend) value += widen(more.values[k]);
      narrow(value, result.values[k]);
      if (++channel == coefficients.c) channel = 0;
    }
    if (dx) store_pack(result, dx, first, total);
    if (masked) store_pack(gradient, masked, first, total);
  }
};

}  // namespace dtrain::backend::cuda
