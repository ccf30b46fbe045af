// Layer norm over the channels of each row of [rows, c], and the gain of a residual branch. A first kernel has a thread
// for each row; what it leaves, two floats a row, others read that have a Pack of a row each.
#pragma once

#include <cmath>

#include "sums.hpp"

namespace dtrain::backend::cuda {

// Two numbers of each row.
struct RowPairs {
  float* values;  // [rows][2]
  DTRAIN_KERNEL float& first(std::int64_t row) const { return values[2 * row]; }
  DTRAIN_KERNEL float& second(std::int64_t row) const { return values[2 * row + 1]; }
};

// out: mean and 1 / deviation. Thread = row.
template <typename T>
struct LayerNormMoments {
  const T* x;
  RowPairs out;
  std::int64_t rows;
  std::int32_t c;
  float epsilon;
  DTRAIN_KERNEL std::int64_t threads() const { return rows; }
  DTRAIN_KERNEL void operator()(std::int64_t row) const {
    const T* const from = x + row * c;
    double sum = 0, squares = 0;
    for (std::int32_t k = 0; k < c; ++k) sum += widen(from[k]);
    const double mean = sum / c;
    for (std::int32_t k = 0; k < c; ++k) {
      const double distance = widen(from[k]) - mean;
      squares += distance * distance;
    }
    out.first(row) = static_cast<float>(mean);
    out.second(row) = static_cast<float>(1.0 / sqrt(squares / c + static_cast<double>(epsilon)));
  }
};

// Thread = Pack of a row.
template <typename T>
struct LayerNormApply {
  const T* x;
  RowPairs moments;
  const float* gamma;
  const float* beta;
  T* y;
  std::int64_t rows;
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return rows * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const float mean = moments.first(at.part), inverse = moments.second(at.part);
    Pack<T> pack = at.channels.load(x, at.part);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      const std::int64_t channel = at.channels.first + k;
      if (channel >= c) continue;
      narrow((widen(pack.values[k]) - mean) * inverse * gamma[channel] + beta[channel], pack.values[k]);
    }
    at.channels.store(pack, y, at.part);
  }
};

// out: means over a row of the gradient by the normalised value, and of its product with that value. Thread = row.
template <typename T>
struct LayerNormGradientMeans {
  const T* x;
  const T* dy;
  RowPairs moments, out;
  const float* gamma;
  std::int64_t rows;
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return rows; }
  DTRAIN_KERNEL void operator()(std::int64_t row) const {
    double sum = 0, product = 0;
    for (std::int32_t k = 0; k < c; ++k) {
      const float gradient = widen(dy[row * c + k]) * gamma[k];
      sum += gradient;
      product += gradient * ((widen(x[row * c + k]) - moments.first(row)) * moments.second(row));
    }
    out.first(row) = static_cast<float>(sum / c);
    out.second(row) = static_cast<float>(product / c);
  }
};

// Thread = Pack of a row.
template <typename T>
struct LayerNormGradient {
  const T* x;
  const T* dy;
  RowPairs moments, means;
  const float* gamma;
  T* dx;
  std::int64_t rows;
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return rows * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const std::int64_t row = at.part;
    const float mean = moments.first(row), inverse = moments.second(row);
    const Pack<T> input = at.channels.load(x, row);
    Pack<T> pack = at.channels.load(dy, row);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      const std::int64_t channel = at.channels.first + k;
      if (channel >= c) continue;
      const float normal = (widen(input.values[k]) - mean) * inverse;
      const float gradient = widen(pack.values[k]) * gamma[channel];
      narrow((gradient - means.first(row) - normal * means.second(row)) * inverse, pack.values[k]);
    }
    at.channels.store(pack, dx, row);
  }
};

// Sums for gamma and beta, [part][2][c]. Thread = part and Pack of channels.
template <typename T>
struct LayerNormSums {
  const T* x;
  const T* dy;
  RowPairs moments;
  float* out;
  RowParts cut;
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    constexpr int kAtOnce = 4;
    PartSums<T, 2> sums = {};
    Pack<T> inputs[kAtOnce], gradients[kAtOnce];
    for_rows<kAtOnce>(
        cut, at.part,
        [&](int k, std::int64_t row) {
          inputs[k] = at.channels.load(x, row);
          gradients[k] = at.channels.load(dy, row);
        },
        [&](int k, std::int64_t row) {
          const float mean = moments.first(row), inverse = moments.second(row);
          DTRAIN_UNROLL
          for (int j = 0; j < Pack<T>::size; ++j) {
            const float gradient = widen(gradients[k].values[j]);
            sums.values[0][j] += gradient * ((widen(inputs[k].values[j]) - mean) * inverse);
            sums.values[1][j] += gradient;
          }
        });
    sums.store(at, out);
  }
};

// y = x * gain, one number for each channel. Thread = Pack of a row.
template <typename T>
struct ScaleChannels {
  const T* x;
  const float* gain;
  T* y;
  std::int64_t rows;
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return rows * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    Pack<T> pack = at.channels.load(x, at.part);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      const std::int64_t channel = at.channels.first + k;
      if (channel < c) narrow(widen(pack.values[k]) * gain[channel], pack.values[k]);
    }
    at.channels.store(pack, y, at.part);
  }
};

// Sums of x * dy, [part][c]. Thread = part and Pack of channels.
template <typename T>
struct GainSums {
  const T* x;
  const T* dy;
  float* out;
  RowParts cut;
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    constexpr int kAtOnce = 4;
    PartSums<T, 1> sums = {};
    Pack<T> inputs[kAtOnce], gradients[kAtOnce];
    for_rows<kAtOnce>(
        cut, at.part,
        [&](int k, std::int64_t row) {
          inputs[k] = at.channels.load(x, row);
          gradients[k] = at.channels.load(dy, row);
        },
        [&](int k, std::int64_t) {
          DTRAIN_UNROLL
          for (int j = 0; j < Pack<T>::size; ++j) {
            sums.values[0][j] += widen(inputs[k].values[j]) * widen(gradients[k].values[j]);
          }
        });
    sums.store(at, out);
  }
};

}  // namespace dtrain::backend::cuda
