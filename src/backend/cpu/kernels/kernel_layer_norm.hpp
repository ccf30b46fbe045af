// Layer norm and the softmax of attention: rows that are taken one by one, each a few times while the first cache has
// it. Sums of a row run in kSums vectors, which are added in a fixed order; gradients by gamma and beta are summed in
// float over kBlock rows, then in double, as those of batch norm.
#pragma once

#include "../../curves.hpp"
#include "kernel_elementwise.hpp"
#include "kernel_norm.hpp"
#include "kernel_vector.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

constexpr int kSums = 4;

inline float sum_of_lanes(Vector v) {
  float lanes[kLanes];
  store(lanes, v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  }
  return lanes[0];
}

// The sum of term.template operator()<V>(position) over a row.
template <typename Term>
inline float sum_row(int count, Term term) {
  Vector sums[kSums] = {};
  int at = 0;
  for (; at + kSums * kLanes <= count; at += kSums * kLanes) {
    for (int k = 0; k < kSums; ++k) sums[k] += term.template operator()<Vector>(at + k * kLanes);
  }
  for (; at + kLanes <= count; at += kLanes) sums[0] += term.template operator()<Vector>(at);
  float rest = 0;
  for (; at < count; ++at) rest += term.template operator()<float>(at);
  return sum_of_lanes((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

template <typename T>
void layer_norm(const void* x, void* out, float* moments, const LayerNormRows& shape) {
  const int c = shape.channels;
  for (int64_t row = 0; row < shape.rows; ++row) {
    const T* const from = (const T*)x + row * c;
    T* const to = (T*)out + row * c;
    const float mean = sum_row(c, [&]<typename V>(int at) { return load<V>(from + at); }) / (float)c;
    const float squares = sum_row(c, [&]<typename V>(int at) {
      const V d = load<V>(from + at) - mean;
      return d * d;
    });
    const float inverse = 1.0f / __builtin_sqrtf(squares / (float)c + shape.epsilon);
    each_element(c, [&]<typename V>(int64_t at) {
      const V normal = (load<V>(from + at) - mean) * inverse;
      store(to + at, normal * load<V>(shape.gamma + at) + load<V>(shape.beta + at));
    });
    if (!moments) continue;
    moments[2 * row] = mean;
    moments[2 * row + 1] = inverse;
  }
}

// Sums of a row: of the gradient by the normalised value, and of its product with that value.
struct RowSums {
  float sum, product;
};

template <typename T, bool kLearns>
inline RowSums layer_norm_sums(const T* x, const T* gradient, float mean, float inverse, const float* gamma, int c,
                               float* gammas, float* betas) {
  Vector sums[2] = {}, products[2] = {};
  float rest = 0, rest_product = 0;
  const auto add = [&]<typename V>(int at, V& sum, V& product) {
    const V d = load<V>(gradient + at), normal = (load<V>(x + at) - mean) * inverse;
    const V weighted = d * load<V>(gamma + at);
    sum += weighted;
    product += weighted * normal;
    if constexpr (kLearns) {
      store(gammas + at, load<V>(gammas + at) + d * normal);
      store(betas + at, load<V>(betas + at) + d);
    }
  };
  int at = 0;
  for (; at + 2 * kLanes <= c; at += 2 * kLanes) {
    add.template operator()<Vector>(at, sums[0], products[0]);
    add.template operator()<Vector>(at + kLanes, sums[1], products[1]);
  }
  for (; at + kLanes <= c; at += kLanes) add.template operator()<Vector>(at, sums[0], products[0]);
  for (; at < c; ++at) add.template operator()<float>(at, rest, rest_product);
  return {sum_of_lanes(sums[0] + sums[1]) + rest, sum_of_lanes(products[0] + products[1]) + rest_product};
}

template <typename T, bool kLearns>
inline void layer_norm_backward_row(const T* x, const T* gradient, const float* moments, T* out, float* scratch,
                                    const LayerNormRows& shape) {
  const int c = shape.channels;
  const float mean = moments[0], inverse = moments[1];
  const RowSums sums =
      layer_norm_sums<T, kLearns>(x, gradient, mean, inverse, shape.gamma, c, scratch, scratch + (kLearns ? c : 0));
  const float bias = sums.sum / (float)c, slope = sums.product / (float)c;
  each_element(c, [&]<typename V>(int64_t at) {
    const V normal = (load<V>(x + at) - mean) * inverse;
    store(out + at, (load<V>(gradient + at) * load<V>(shape.gamma + at) - bias - normal * slope) * inverse);
  });
}

template <typename T>
void layer_norm_backward(const void* x, const void* gradient, const float* moments, void* out, double* sums,
                         float* scratch, const LayerNormRows& shape) {
  const int c = shape.channels;
  const auto row_of = sums ? layer_norm_backward_row<T, true> : layer_norm_backward_row<T, false>;
  for (int64_t start = 0; start < shape.rows; start += kBlock) {
    const int64_t stop = smaller(start + kBlock, shape.rows);
    if (sums) {
      for (int k = 0; k < 2 * c; ++k) scratch[k] = 0;
    }
    for (int64_t row = start; row < stop; ++row) {
      row_of((const T*)x + row * c, (const T*)gradient + row * c, moments + 2 * row, (T*)out + row * c, scratch, shape);
    }
    if (sums) {
      for (int k = 0; k < 2 * c; ++k) sums[k] += scratch[k];
    }
  }
}

inline float largest_of(const float* row, int columns) {
  float largest = row[0];
  int at = 0;
  if (columns >= kLanes) {
    Vector lanes = load<Vector>(row);
    for (at = kLanes; at + kLanes <= columns; at += kLanes) {
      const Vector v = load<Vector>(row + at);
      lanes = where_greater(v, lanes, v, lanes);
    }
    float values[kLanes];
    store(values, lanes);
    for (int k = 0; k < kLanes; ++k) largest = values[k] > largest ? values[k] : largest;
  }
  for (; at < columns; ++at) largest = row[at] > largest ? row[at] : largest;
  return largest;
}

// factor > 0. A NaN among the values makes all of the row NaN.
void softmax_rows(float* x, int64_t rows, int columns, float factor) {
  for (int64_t r = 0; r < rows; ++r) {
    float* const row = x + r * columns;
    const float largest = largest_of(row, columns);
    each_element(columns, [&]<typename V>(int64_t at) {
      store(row + at, map_registers([]<typename R>(R e) { return exp_of_negative<R>(e); },
                                    (load<V>(row + at) - largest) * factor));
    });
    const float share = 1.0f / sum_row(columns, [&]<typename V>(int at) { return load<V>(row + at); });
    each_element(columns, [&]<typename V>(int64_t at) { store(row + at, load<V>(row + at) * share); });
  }
}

void softmax_rows_backward(const float* p, float* gradient, int64_t rows, int columns, float factor) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const shares = p + r * columns;
    float* const row = gradient + r * columns;
    const float mean = sum_row(columns, [&]<typename V>(int at) { return load<V>(shares + at) * load<V>(row + at); });
    each_element(columns, [&]<typename V>(int64_t at) {
      store(row + at, load<V>(shares + at) * (load<V>(row + at) - mean) * factor);
    });
  }
}

}  // namespace
}  // namespace dtrain::backend::cpu::DTRAIN_ISA
