// Batch norm, forward and backward, each in two passes over memory. Memory is read in its order, a few rows at a time:
// within these, columns are taken in blocks of up to four vectors whose factors and sums stay in registers. Sums are
// kept in float over kBlock rows, then in double.
#pragma once

#include "kernel_vector.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

constexpr int64_t kBlock = 128;
constexpr int kMaxVectors = 4;
constexpr int kPanel = 1024;             // columns whose sums wait in the first cache
constexpr int64_t kTileElements = 2048;  // of a few rows

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// The rows of a tile of `columns`: at least two, so that factors are loaded less often than elements.
inline int64_t tile_rows(int columns) {
  const int64_t rows = kTileElements / columns;
  return rows < 2 ? 2 : rows;
}

// Calls body.template operator()<N>(first column) for blocks of N vectors that cover the columns [column, end).
template <typename Body>
inline void each_block(int column, int end, Body body) {
  for (; column + kMaxVectors * kLanes <= end; column += kMaxVectors * kLanes) body.template operator()<4>(column);
  for (; column + 2 * kLanes <= end; column += 2 * kLanes) body.template operator()<2>(column);
  for (; column < end; column += kLanes) body.template operator()<1>(column);
}

// Two sums per column over all rows: term(position of the element, column, first, second) adds one vector or float to
// each. `second` may be null. Columns go panel by panel; within a panel kBlock rows are summed in float, and then added
// to the doubles; within these rows, tile after tile, each block of columns takes its sums into registers.
template <typename Term>
inline void sum_columns(Rows shape, double* first, double* second, Term term) {
  float firsts[kPanel], seconds[kPanel];  // sums over a block of rows
  for (int panel = 0; panel < shape.width; panel += kPanel) {
    const int end = (int)smaller(panel + kPanel, shape.width);
    const int64_t tile = tile_rows(end - panel);
    for (int64_t start = 0; start < shape.rows; start += kBlock) {
      const int64_t stop = smaller(start + kBlock, shape.rows);
      for (int k = 0; k < end - panel; ++k) firsts[k] = seconds[k] = 0;
      for (int64_t tile_start = start; tile_start < stop; tile_start += tile) {
        const int64_t tile_stop = smaller(tile_start + tile, stop);
        each_block(panel, end, [&]<int N>(int column) {
          Vector first_sums[N], second_sums[N];
          for (int v = 0; v < N; ++v) {
            first_sums[v] = load<Vector>(firsts + column - panel + v * kLanes);
            second_sums[v] = load<Vector>(seconds + column - panel + v * kLanes);
          }
          for (int64_t row = tile_start; row < tile_stop; ++row) {
            for (int v = 0; v < N; ++v) {
              const int at = column + v * kLanes;
              term.template operator()<Vector>(row * shape.width + at, at, first_sums[v], second_sums[v]);
            }
          }
          for (int v = 0; v < N; ++v) {
            store(firsts + column - panel + v * kLanes, first_sums[v]);
            store(seconds + column - panel + v * kLanes, second_sums[v]);
          }
        });
      }
      for (int k = 0; k < end - panel; ++k) {
        first[panel + k] += firsts[k];
        if (second) second[panel + k] += seconds[k];
      }
    }
  }
  for (int column = 0; column < shape.tail; ++column) {
    float one = 0, other = 0;
    term.template operator()<float>(shape.rows * shape.width + column, column, one, other);
    first[column] += one;
    if (second) second[column] += other;
  }
}

// make.template operator()<V>(column) gives the column's factors, apply.template operator()<V>(position, factors) the
// work.
template <typename Make, typename Apply>
inline void map_columns(Rows shape, Make make, Apply apply) {
  const int64_t tile = tile_rows(shape.width);
  for (int64_t row = 0; row < shape.rows; row += tile) {
    const int64_t last = smaller(row + tile, shape.rows);
    each_block(0, shape.width, [&]<int N>(int column) {
      decltype(make.template operator()<Vector>(0)) factors[N];
      for (int v = 0; v < N; ++v) factors[v] = make.template operator()<Vector>(column + v * kLanes);
      for (int64_t r = row; r < last; ++r) {
        for (int v = 0; v < N; ++v) {
          apply.template operator()<Vector>(r * shape.width + column + v * kLanes, factors[v]);
        }
      }
    });
  }
  for (int c = 0; c < shape.tail; ++c) {
    apply.template operator()<float>(shape.rows * shape.width + c, make.template operator()<float>(c));
  }
}

template <typename T>
void moments(const void* input, Rows shape, const float* shift, double* sum, double* square) {
  const T* x = (const T*)input;
  sum_columns(shape, sum, square, [&]<typename V>(int64_t at, int column, V& a, V& b) {
    const V d = load<V>(x + at) - load<V>(shift + column);
    a += d;
    b += d * d;
  });
}

template <typename T>
void scale_columns(const void* input, const float* factor, void* output, Rows shape) {
  const T* x = (const T*)input;
  T* out = (T*)output;
  map_columns(
      shape, [&]<typename V>(int column) { return load<V>(factor + column); },
      [&]<typename V>(int64_t at, V factors) { store(out + at, load<V>(x + at) * factors); });
}

template <typename T>
void column_products(const void* left, const void* right, Rows shape, double* sum) {
  const T *a = (const T*)left, *b = (const T*)right;
  sum_columns(shape, sum, nullptr,
              [&]<typename V>(int64_t at, int, V& total, V&) { total += load<V>(a + at) * load<V>(b + at); });
}

template <typename T>
void column_sums(const void* input, Rows shape, double* sum) {
  const T* x = (const T*)input;
  sum_columns(shape, sum, nullptr, [&]<typename V>(int64_t at, int, V& a, V&) { a += load<V>(x + at); });
}

template <typename V>
struct ScaleShift {
  V scale, shift;
};

template <typename T, bool kResidual, bool kRelu>
void normalise_as(const T* x, const T* residual, T* out, Rows shape, const float* scale, const float* shift) {
  map_columns(
      shape,
      [&]<typename V>(int c) {
        return ScaleShift<V>{load<V>(scale + c), load<V>(shift + c)};
      },
      [&]<typename V>(int64_t at, const ScaleShift<V>& f) {
        V v = load<V>(x + at) * f.scale + f.shift;
        if constexpr (kResidual) v += load<V>(residual + at);
        if constexpr (kRelu) v = relu(v);
        store(out + at, v);
      });
}

template <typename T>
void normalise(const void* x, const void* residual, void* out, Rows shape, const float* scale, const float* shift,
               bool with_relu) {
  const auto as = residual ? (with_relu ? normalise_as<T, true, true> : normalise_as<T, true, false>)
                           : (with_relu ? normalise_as<T, false, true> : normalise_as<T, false, false>);
  as((const T*)x, (const T*)residual, (T*)out, shape, scale, shift);
}

// The gradient behind the ReLU at one place. `input` is the batch norm's input there.
template <typename T, typename V, Mask kMask, bool kTwo>
inline V masked_gradient(const NormBackward& t, int64_t at, V input, V scale, V shift) {
  V d = load<V>((const T*)t.gradient + at);
  if constexpr (kTwo) d += load<V>((const T*)t.gradient2 + at);
  if constexpr (kMask == Mask::from_input) d = where_positive<V>(input * scale + shift, d);
  if constexpr (kMask == Mask::from_output) d = where_positive<V>(load<V>((const T*)t.output + at), d);
  return d;
}

template <typename T, Mask kMask, bool kTwo, bool kWrite>
void norm_backward_sums_as(const NormBackward& t, Rows shape, double* sum, double* product) {
  sum_columns(shape, sum, product, [&]<typename V>(int64_t at, int c, V& a, V& b) {
    const V input = load<V>((const T*)t.input + at);
    V scale{}, shift{};
    if constexpr (kMask == Mask::from_input) scale = load<V>(t.scale + c), shift = load<V>(t.shift + c);
    V d = masked_gradient<T, V, kMask, kTwo>(t, at, input, scale, shift);
    if constexpr (kWrite) {
      store((T*)t.masked + at, d);
      d = load<V>((const T*)t.masked + at);  // what the second pass will see
    }
    a += d;
    b += d * (input - load<V>(t.mean + c));
  });
}

template <typename T, Mask kMask>
void norm_backward_sums_masked(const NormBackward& t, Rows shape, double* sum, double* product) {
  const auto as =
      t.gradient2
          ? (t.masked ? norm_backward_sums_as<T, kMask, true, true> : norm_backward_sums_as<T, kMask, true, false>)
          : (t.masked ? norm_backward_sums_as<T, kMask, false, true> : norm_backward_sums_as<T, kMask, false, false>);
  as(t, shape, sum, product);
}

template <typename T>
void norm_backward_sums(const NormBackward& t, Rows shape, double* sum, double* product) {
  const auto as = t.mask == Mask::none         ? norm_backward_sums_masked<T, Mask::none>
                  : t.mask == Mask::from_input ? norm_backward_sums_masked<T, Mask::from_input>
                                               : norm_backward_sums_masked<T, Mask::from_output>;
  as(t, shape, sum, product);
}

template <typename V>
struct BackwardFactors {
  V mean, scale, shift, factor, bias, slope;
};

template <typename T, Mask kMask, bool kAddend>
void norm_backward_as(const NormBackward& t, const NormGradient& g, const void* addend, void* out, Rows shape) {
  map_columns(
      shape,
      [&]<typename V>(int c) {
        BackwardFactors<V> f{load<V>(t.mean + c), V{}, V{}, load<V>(g.factor + c), load<V>(g.bias + c),
                             load<V>(g.slope + c)};
        if constexpr (kMask == Mask::from_input) f.scale = load<V>(t.scale + c), f.shift = load<V>(t.shift + c);
        return f;
      },
      [&]<typename V>(int64_t at, const BackwardFactors<V>& f) {
        const V input = load<V>((const T*)t.input + at);
        const V d = masked_gradient<T, V, kMask, false>(t, at, input, f.scale, f.shift);
        V v = f.factor * (d - f.bias - (input - f.mean) * f.slope);
        if constexpr (kAddend) v += load<V>((const T*)addend + at);
        store((T*)out + at, v);
      });
}

template <typename T, bool kAddend>
void norm_backward_added(const NormBackward& t, const NormGradient& g, const void* addend, void* out, Rows shape) {
  const auto as = t.mask == Mask::none         ? norm_backward_as<T, Mask::none, kAddend>
                  : t.mask == Mask::from_input ? norm_backward_as<T, Mask::from_input, kAddend>
                                               : norm_backward_as<T, Mask::from_output, kAddend>;
  as(t, g, addend, out, shape);
}

template <typename T>
void norm_backward(const NormBackward& t, const NormGradient& g, const void* addend, void* out, Rows shape) {
  (addend ? norm_backward_added<T, true> : norm_backward_added<T, false>)(t, g, addend, out, shape);
}

}  // namespace
}  // namespace dtrain::backend::cpu::DTRAIN_ISA
