// orthogonal() of <dtrain/nn/optimizer_rule.hpp>, for all weights of a network. A weight is worked on as Y, which is
// the weight's direction or its transpose, whichever has no fewer rows than columns. With S = Y'Y an iteration is Y (aI
// + bS + cSS): three products, each of them of all weights at once. By its definition a thread computes one element; a
// native kernel computes tiles (Tiled). Y has more columns than the weight gives it, with zeros that stay zeros.
#pragma once

#include <cmath>

#include <dtrain/nn/optimizer_rule.hpp>

#include "sums.hpp"
#include "update.hpp"

namespace dtrain::backend::cuda {

constexpr std::int64_t kMuonPart = 128;  // elements whose squares one thread adds up for a length
constexpr std::int32_t kMuonFold = 64;   // parts that one thread adds up
constexpr std::int32_t kMuonTile = 64;   // rows and columns of a product that a block of a native kernel computes

// One weight. `first_...`: how many of the kind the matrices before this one have. That is where its threads begin, and
// where its elements lie in the buffers of that kind.
struct MuonMatrix {
  std::int64_t flat = 0;               // its first element in the flat buffers
  std::int32_t rows = 0, columns = 0;  // as it lies there
  std::int32_t high = 0, low = 0;      // rows and columns of Y; low is whole packs of any type
  std::int32_t parts = 0, folds = 0;   // of the sums for its lengths
  std::int64_t first_part = 0, first_fold = 0;
  std::int64_t first_cell = 0;                              // high x low
  std::int64_t first_square = 0;                            // low x low
  std::int64_t first_cell_tile = 0, first_square_tile = 0;  // of products as large as Y, and as large as S
  bool scale_free = false;

  DTRAIN_KERNEL std::int64_t size() const { return std::int64_t{rows} * columns; }
  DTRAIN_KERNEL std::int64_t cells() const { return std::int64_t{high} * low; }
  DTRAIN_KERNEL std::int64_t square() const { return std::int64_t{low} * low; }
  DTRAIN_KERNEL std::int32_t tiles_in_row() const { return (low + kMuonTile - 1) / kMuonTile; }
  DTRAIN_KERNEL std::int64_t square_tiles() const { return std::int64_t{tiles_in_row()} * tiles_in_row(); }
  DTRAIN_KERNEL std::int64_t cell_tiles() const { return packs_of(high, kMuonTile) * tiles_in_row(); }
  DTRAIN_KERNEL bool tall() const { return rows > columns; }
  // Columns of Y that the weight has.
  DTRAIN_KERNEL std::int32_t width() const { return tall() ? columns : rows; }
  // Where the element of Y lies in the flat buffers.
  DTRAIN_KERNEL std::int64_t flat_of(std::int64_t row, std::int64_t column) const {
    return flat + (tall() ? row * columns + column : column * columns + row);
  }
  DTRAIN_KERNEL std::int64_t cell(std::int64_t row, std::int64_t column) const {
    return first_cell + row * low + column;
  }
};

struct MuonLength {
  float direction;
  float scale;  // of the weight before the step
};

struct MuonTable {
  const MuonMatrix* matrices;
  std::int32_t number;
  // The matrix with unit i of a kind: MuonMatrix::first_... of it is the last one that is not above i.
  template <std::int64_t MuonMatrix::*First>
  DTRAIN_KERNEL std::int32_t find(std::int64_t i) const {
    std::int32_t low = 0, high = number;
    while (high - low > 1) {
      const std::int32_t middle = (low + high) / 2;
      (matrices[middle].*First <= i ? low : high) = middle;
    }
    return low;
  }
};

// The elements of Y that thread i moves: `size` neighbours in a row. Neighbouring threads have neighbouring rows: those
// are neighbours in memory where a weight is wide, as most are.
struct MuonPlace {
  std::int32_t matrix;
  std::int64_t row, column;
  DTRAIN_KERNEL static MuonPlace of(const MuonTable& table, std::int64_t i, std::int32_t size) {
    const std::int32_t which = table.find<&MuonMatrix::first_cell>(i * size);
    const MuonMatrix& m = table.matrices[which];
    const std::int64_t pack = i - m.first_cell / size;
    return {which, pack % m.high, pack / m.high * size};
  }
};

// Sums of squares of directions and weights. Thread = part of a matrix: every parts-th element.
struct MuonSquares {
  MuonTable table;
  const UpdateStep* step;
  const float* weights;
  MuonLength* sums;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[table.find<&MuonMatrix::first_part>(i)];
    const float* const directions = step->sum;
    double direction = 0, weight = 0;
    constexpr int kTogether = 8;
    for (std::int64_t first = i - m.first_part; first < m.size(); first += std::int64_t{kTogether} * m.parts) {
      float d[kTogether], w[kTogether];
      DTRAIN_UNROLL
      for (int k = 0; k < kTogether; ++k) {
        const std::int64_t at = first + std::int64_t{k} * m.parts;
        d[k] = at < m.size() ? directions[m.flat + at] : 0.0f;
        w[k] = at < m.size() ? weights[m.flat + at] : 0.0f;
      }
      DTRAIN_UNROLL
      for (int k = 0; k < kTogether; ++k) {
        direction += static_cast<double>(d[k]) * d[k];
        weight += static_cast<double>(w[k]) * w[k];
      }
    }
    sums[i] = {static_cast<float>(direction), static_cast<float>(weight)};
  }
};

// Parts become folds. Thread = fold of a matrix.
struct MuonFolds {
  MuonTable table;
  const MuonLength* parts;
  MuonLength* folds;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[table.find<&MuonMatrix::first_fold>(i)];
    const auto first = static_cast<std::int32_t>(i - m.first_fold) * kMuonFold;
    const std::int32_t rest = m.parts - first, number = rest < kMuonFold ? rest : kMuonFold;
    folds[i] = sum(parts + m.first_part + first, number);
  }
  DTRAIN_KERNEL static MuonLength sum(const MuonLength* of, std::int32_t number) {
    return {static_cast<float>(sum_in_order(number, [&](std::int32_t k) { return of[k].direction; })),
            static_cast<float>(sum_in_order(number, [&](std::int32_t k) { return of[k].scale; }))};
  }
};

// Thread = matrix.
struct MuonLengths {
  MuonTable table;
  const MuonLength* folds;
  MuonLength* lengths;
  DTRAIN_KERNEL std::int64_t threads() const { return table.number; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[i];
    const auto [direction, weight] = MuonFolds::sum(folds + m.first_fold, m.folds);
    const bool scales = m.scale_free && weight > 0;
    lengths[i] = {sqrtf(direction) + nn::NewtonSchulz::kLeastNorm,
                  scales ? sqrtf(static_cast<float>(m.rows) / weight) : 1.0f};
  }
};

// Y at the start. Thread = pack of it.
template <typename T>
struct MuonLoad {
  MuonTable table;
  const UpdateStep* step;
  const MuonLength* lengths;
  T* y;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total / Pack<T>::size; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const MuonPlace at = MuonPlace::of(table, i, Pack<T>::size);
    const MuonMatrix& m = table.matrices[at.matrix];
    const float* const directions = step->sum;
    const float length = lengths[at.matrix].direction;
    Pack<T> pack;
    for (int k = 0; k < Pack<T>::size; ++k) {
      const bool there = at.column + k < m.width();
      narrow(there ? directions[m.flat_of(at.row, at.column + k)] / length : 0.0f, pack.values[k]);
    }
    *reinterpret_cast<Pack<T>*>(y + m.cell(at.row, at.column)) = pack;
  }
};

// What a product of one matrix reads and writes: result[row][column] = the sum over k < depth of a(row, k) b(column,
// k). All of them have rows of MuonMatrix::low elements.
template <typename T>
struct MuonFactors {
  const T* a;
  const T* b;
  T* result;
  std::int32_t rows, columns, depth;
};

template <bool ByDepth, typename T>
DTRAIN_KERNEL float multiply_cell(const MuonFactors<T>& of, std::int64_t stride, std::int64_t row,
                                  std::int64_t column) {
  float sum = 0;
  for (std::int64_t k = 0; k < of.depth; ++k) {
    sum += ByDepth ? widen(of.a[k * stride + row]) * widen(of.b[k * stride + column])
                   : widen(of.a[row * stride + k]) * widen(of.b[column * stride + k]);
  }
  return sum;
}

// Element i of the results of a product, by its definition. `cells` and `tiles` of a product name what MuonMatrix
// counts for it; finish() makes an element of a sum.
template <typename Product>
DTRAIN_KERNEL void multiply_one(const Product& product, std::int64_t i) {
  const MuonMatrix& m = product.table.matrices[product.table.template find<Product::cells>(i)];
  const std::int64_t cell = i - m.*Product::cells, row = cell / m.low, column = cell % m.low;
  const auto factors = product.factors(m);
  const float sum = multiply_cell<Product::by_depth>(factors, m.low, row, column);
  narrow(product.finish(m, static_cast<std::int32_t>(row), static_cast<std::int32_t>(column), sum),
         factors.result[cell]);
}

template <typename Product>
DTRAIN_KERNEL const MuonMatrix& matrix_of_tile(const Product& product, std::int64_t tile) {
  return product.table.matrices[product.table.template find<Product::tiles>(tile)];
}

// S = Y'Y. Thread = cell of S.
template <typename T>
struct MuonGram {
  using Value = T;
  static constexpr auto cells = &MuonMatrix::first_square, tiles = &MuonMatrix::first_square_tile;
  static constexpr bool by_depth = true;  // row k of a factor in memory has its elements (..., k)
  MuonTable table;
  const T* y;
  T* squares;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL MuonFactors<T> factors(const MuonMatrix& m) const {
    return {y + m.first_cell, y + m.first_cell, squares + m.first_square, m.low, m.low, m.high};
  }
  DTRAIN_KERNEL float finish(const MuonMatrix&, std::int32_t, std::int32_t, float sum) const { return sum; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const { multiply_one(*this, i); }
};

// aI + bS + cSS: S is its own transpose. Thread = cell of it.
template <typename T>
struct MuonPolynomial {
  using Value = T;
  static constexpr auto cells = &MuonMatrix::first_square, tiles = &MuonMatrix::first_square_tile;
  static constexpr bool by_depth = false;
  MuonTable table;
  const UpdateStep* step;
  const T* squares;
  T* result;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL MuonFactors<T> factors(const MuonMatrix& m) const {
    const T* const s = squares + m.first_square;
    return {s, s, result + m.first_square, m.low, m.low, m.low};
  }
  DTRAIN_KERNEL float finish(const MuonMatrix& m, std::int32_t row, std::int32_t column, float sum) const {
    const nn::NewtonSchulz& rule = step->rule.newton_schulz;
    const float rest = rule.b * widen(squares[m.first_square + std::int64_t{row} * m.low + column]) + rule.c * sum;
    return row == column ? rule.a + rest : rest;
  }
  DTRAIN_KERNEL void operator()(std::int64_t i) const { multiply_one(*this, i); }
};

// The next Y, `polynomials` being what MuonPolynomial left, as symmetric as S. Thread = cell of Y.
template <typename T>
struct MuonAdvance {
  using Value = T;
  static constexpr auto cells = &MuonMatrix::first_cell, tiles = &MuonMatrix::first_cell_tile;
  static constexpr bool by_depth = false;
  MuonTable table;
  const T* polynomials;
  const T* from;
  T* to;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL MuonFactors<T> factors(const MuonMatrix& m) const {
    return {from + m.first_cell, polynomials + m.first_square, to + m.first_cell, m.high, m.low, m.low};
  }
  DTRAIN_KERNEL float finish(const MuonMatrix&, std::int32_t, std::int32_t, float sum) const { return sum; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const { multiply_one(*this, i); }
};

// A product of all matrices. By definition it is computed cell by cell; a native kernel computes it in so many tiles
// and, in two bytes, on tensor cores, which add in an order of their own.
template <typename Product>
struct Tiled {
  Product product;
  std::int64_t tiles;
};

// The step of the weights. Thread = pack of Y.
template <typename T>
struct MuonStep {
  MuonTable table;
  const UpdateStep* step;
  const T* y;
  const MuonLength* lengths;
  float* weights;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total / Pack<T>::size; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const MuonPlace at = MuonPlace::of(table, i, Pack<T>::size);
    const MuonMatrix& m = table.matrices[at.matrix];
    const float rate = step->learning_rate, decay = step->rule.weight_decay, scale = lengths[at.matrix].scale;
    const auto pack = *reinterpret_cast<const Pack<T>*>(y + m.cell(at.row, at.column));
    for (int k = 0; k < Pack<T>::size; ++k) {
      if (at.column + k >= m.width()) continue;
      float& weight = weights[m.flat_of(at.row, at.column + k)];
      const float scaled = scale * weight;
      weight = scaled - rate * (widen(pack.values[k]) + decay * scaled);
    }
  }
};

}  // namespace dtrain::backend::cuda
