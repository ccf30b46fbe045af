// The layers around and in a transformer, on tokens [n, tokens, c]. A thread has one element unless said otherwise.
#pragma once

#include <cmath>

#include "elementwise.hpp"

namespace dtrain::backend::cuda {

// y[n][1 + tokens][c]: `token`, then x.
template <typename T>
struct PrependToken {
  const T* x;
  const float* token;
  T* y;
  std::int64_t n, sample;  // sample: elements of one of x
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return n * (sample + c); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t number = i / (sample + c), element = i % (sample + c);
    if (element < c) {
      narrow(token[element], y[i]);
    } else {
      y[i] = x[number * sample + element - c];
    }
  }
};

// Elements of each sample of x, from `first` on, as many as y has; those that x has not are 0.
template <typename T>
struct CopyTokens {
  const T* x;
  T* y;
  std::int64_t n, from, to, first;  // from, to: elements of a sample of x and of y
  DTRAIN_KERNEL std::int64_t threads() const { return n * to; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t number = i / to, element = i % to + first;
    if (element < from) {
      y[i] = x[number * from + element];
    } else {
      narrow(0.0f, y[i]);
    }
  }
};

template <typename T>
struct AddPosition {
  const T* x;
  const float* position;
  T* y;
  std::int64_t n, sample;
  DTRAIN_KERNEL std::int64_t threads() const { return n * sample; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const { narrow(widen(x[i]) + position[i % sample], y[i]); }
};

// Sums over the samples of their elements below `size`, in the order of the samples. Thread = element of a sample.
template <typename T>
struct SampleSums {
  const T* x;
  float* to;
  std::int64_t n, sample, size;
  DTRAIN_KERNEL std::int64_t threads() const { return size; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    double sum = 0;
    for (std::int64_t number = 0; number < n; ++number) sum += widen(x[number * sample + i]);
    to[i] = static_cast<float>(sum);
  }
};

// Queries, keys and values [n][tokens][3][heads][channels], what is made of them [n][tokens][heads][channels], and the
// shares of keys in queries [n][heads][queries][keys].
struct AttentionShape {
  std::int64_t n;
  std::int32_t tokens, heads, channels;
  DTRAIN_KERNEL std::int64_t width() const { return std::int64_t{heads} * channels; }
  DTRAIN_KERNEL std::int64_t rows() const { return n * heads * tokens; }
  DTRAIN_KERNEL std::int64_t shares() const { return rows() * tokens; }
  // part: 0 queries, 1 keys, 2 values.
  DTRAIN_KERNEL std::int64_t input(std::int64_t sample, std::int64_t token, int part, std::int64_t head) const {
    return ((sample * tokens + token) * 3 + part) * width() + head * channels;
  }
  DTRAIN_KERNEL std::int64_t output(std::int64_t sample, std::int64_t token, std::int64_t head) const {
    return (sample * tokens + token) * width() + head * channels;
  }
  DTRAIN_KERNEL float factor() const { return static_cast<float>(1.0 / sqrt(static_cast<double>(channels))); }
};

template <typename T>
DTRAIN_KERNEL float dot(const T* a, const T* b, std::int32_t count) {
  float sum = 0;
  for (std::int32_t k = 0; k < count; ++k) sum += widen(a[k]) * widen(b[k]);
  return sum;
}

// Thread = query of a head.
template <typename T>
struct AttentionShares {
  const T* x;
  float* shares;
  AttentionShape shape;
  DTRAIN_KERNEL std::int64_t threads() const { return shape.rows(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t query = i % shape.tokens, head = i / shape.tokens % shape.heads;
    const std::int64_t sample = i / shape.tokens / shape.heads;
    float* const row = shares + i * shape.tokens;
    float largest = 0;
    for (std::int32_t key = 0; key < shape.tokens; ++key) {
      row[key] = dot(x + shape.input(sample, query, 0, head), x + shape.input(sample, key, 1, head), shape.channels);
      if (key == 0 || row[key] > largest) largest = row[key];
    }
    double sum = 0;
    for (std::int32_t key = 0; key < shape.tokens; ++key) {
      const double share = exponential((static_cast<double>(row[key]) - largest) * shape.factor());
      row[key] = static_cast<float>(share);
      sum += share;
    }
    for (std::int32_t key = 0; key < shape.tokens; ++key) row[key] = static_cast<float>(row[key] / sum);
  }
};

template <typename T>
struct Attend {
  const T* x;
  const float* shares;
  T* y;
  AttentionShape shape;
  DTRAIN_KERNEL std::int64_t threads() const { return shape.n * shape.tokens * shape.width(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t channel = i % shape.channels, head = i / shape.channels % shape.heads;
    const std::int64_t query = i / shape.width() % shape.tokens, sample = i / shape.width() / shape.tokens;
    const float* const row = shares + ((sample * shape.heads + head) * shape.tokens + query) * shape.tokens;
    float sum = 0;
    for (std::int32_t key = 0; key < shape.tokens; ++key) {
      sum += row[key] * widen(x[shape.input(sample, key, 2, head) + channel]);
    }
    narrow(sum, y[i]);
  }
};

// The gradient by the products of queries and keys, [n][heads][queries][keys]. Thread = query of a head.
template <typename T>
struct AttentionScoreGradient {
  const T* x;
  const T* dy;
  const float* shares;
  float* scores;
  AttentionShape shape;
  DTRAIN_KERNEL std::int64_t threads() const { return shape.rows(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t query = i % shape.tokens, head = i / shape.tokens % shape.heads;
    const std::int64_t sample = i / shape.tokens / shape.heads;
    const float* const row = shares + i * shape.tokens;
    float* const to = scores + i * shape.tokens;
    double mean = 0;
    for (std::int32_t key = 0; key < shape.tokens; ++key) {
      to[key] = dot(dy + shape.output(sample, query, head), x + shape.input(sample, key, 2, head), shape.channels);
      mean += static_cast<double>(row[key]) * to[key];
    }
    for (std::int32_t key = 0; key < shape.tokens; ++key) {
      to[key] = static_cast<float>(row[key] * (to[key] - mean) * shape.factor());
    }
  }
};

// Thread = element of the input.
template <typename T>
struct AttentionGradient {
  const T* x;
  const T* dy;
  const float* shares;
  const float* scores;
  T* dx;
  AttentionShape shape;
  DTRAIN_KERNEL std::int64_t threads() const { return 3 * shape.n * shape.tokens * shape.width(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t channel = i % shape.channels, head = i / shape.channels % shape.heads;
    const auto part = static_cast<int>(i / shape.width() % 3);
    const std::int64_t token = i / shape.width() / 3 % shape.tokens, sample = i / shape.width() / 3 / shape.tokens;
    const std::int64_t square = (sample * shape.heads + head) * shape.tokens * shape.tokens;
    float sum = 0;
    for (std::int32_t other = 0; other < shape.tokens; ++other) {
      const std::int64_t as_query = square + token * shape.tokens + other;
      const std::int64_t as_key = square + std::int64_t{other} * shape.tokens + token;
      if (part == 0) {
        sum += scores[as_query] * widen(x[shape.input(sample, other, 1, head) + channel]);
      } else if (part == 1) {
        sum += scores[as_key] * widen(x[shape.input(sample, other, 0, head) + channel]);
      } else {
        sum += shares[as_key] * widen(dy[shape.output(sample, other, head) + channel]);
      }
    }
    narrow(sum, dx[i]);
  }
};

}  // namespace dtrain::backend::cuda
