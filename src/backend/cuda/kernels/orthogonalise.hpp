// orthogonal() of <dtrain/nn/optimizer_rule.hpp>, for all weights of a network. A weight is worked on as Y, which is
// the weight's direction or its transpose, whichever has no fewer rows than columns. With S = Y'Y an iteration is Y (aI
// + bS + cSS): three products, and one pass over squares, which are small. The products of large weights are work for a
// library, as convolutions of one pixel; what multiplies here is for the many small ones, all at once. Y has more
// columns than the weight gives it, with zeros that stay zeros.
#pragma once

#include <cmath>

#include <dtrain/nn/optimizer_rule.hpp>

#include "update.hpp"

namespace dtrain::backend::cuda {

constexpr std::int64_t kMuonPart = 1024;  // squares that one thread adds up for a length

// One weight. `first_...`: how many of the kind the matrices before this one have. That is where its threads begin, and
// where its elements lie in the buffers of that kind.
struct MuonMatrix {
  std::int64_t flat = 0;               // its first element in the flat buffers
  std::int32_t rows = 0, columns = 0;  // as it lies there
  std::int32_t high = 0, low = 0;      // rows and columns of Y; low is whole packs of any type
  std::int32_t parts = 0;              // of the sums for its lengths
  std::int64_t first_part = 0;
  std::int64_t first_cell = 0;    // high x low
  std::int64_t first_square = 0;  // low x low
  bool scale_free = false;

  DTRAIN_KERNEL std::int64_t size() const { return std::int64_t{rows} * columns; }
  DTRAIN_KERNEL std::int64_t cells() const { return std::int64_t{high} * low; }
  DTRAIN_KERNEL std::int64_t square() const { return std::int64_t{low} * low; }
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
    for (std::int64_t k = i - m.first_part; k < m.size(); k += m.parts) {
      const double d = directions[m.flat + k], w = weights[m.flat + k];
      direction += d * d;
      weight += w * w;
    }
    sums[i] = {static_cast<float>(direction), static_cast<float>(weight)};
  }
};

// Thread = matrix.
struct MuonLengths {
  MuonTable table;
  const MuonLength* sums;
  MuonLength* lengths;
  DTRAIN_KERNEL std::int64_t threads() const { return table.number; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[i];
    double direction = 0, weight = 0;
    for (std::int64_t part = m.first_part; part < m.first_part + m.parts; ++part) {
      direction += sums[part].direction;
      weight += sums[part].scale;
    }
    const bool scales = m.scale_free && weight > 0;
    lengths[i] = {static_cast<float>(sqrt(direction)) + nn::NewtonSchulz::kLeastNorm,
                  scales ? static_cast<float>(sqrt(m.rows / weight)) : 1.0f};
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

// S = Y'Y of the matrices from cell `first` of the squares on. Thread = cell.
template <typename T>
struct MuonGram {
  MuonTable table;
  const T* y;
  T* squares;
  std::int64_t first, total;
  DTRAIN_KERNEL std::int64_t threads() const { return total - first; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[table.find<&MuonMatrix::first_square>(first + i)];
    const std::int64_t cell = first + i - m.first_square, row = cell / m.low, column = cell % m.low;
    float sum = 0;
    for (std::int32_t k = 0; k < m.high; ++k) sum += widen(y[m.cell(k, row)]) * widen(y[m.cell(k, column)]);
    narrow(sum, squares[first + i]);
  }
};

// SS, likewise: S is its own transpose.
template <typename T>
struct MuonSquare {
  MuonTable table;
  const T* squares;
  T* result;
  std::int64_t first, total;
  DTRAIN_KERNEL std::int64_t threads() const { return total - first; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[table.find<&MuonMatrix::first_square>(first + i)];
    const std::int64_t cell = first + i - m.first_square, row = cell / m.low, column = cell % m.low;
    const T* const s = squares + m.first_square;
    float sum = 0;
    for (std::int64_t k = 0; k < m.low; ++k) sum += widen(s[k * m.low + row]) * widen(s[k * m.low + column]);
    narrow(sum, result[first + i]);
  }
};

// SS becomes aI + bS + cSS, for all matrices. Thread = pack of cells.
template <typename T>
struct MuonPolynomial {
  MuonTable table;
  const UpdateStep* step;
  const T* squares;
  T* result;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total / Pack<T>::size; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<T>::size;
    const MuonMatrix& m = table.matrices[table.find<&MuonMatrix::first_square>(first)];
    const nn::NewtonSchulz rule = step->rule.newton_schulz;
    const std::int64_t row = (first - m.first_square) / m.low, column = (first - m.first_square) % m.low;
    const auto once = *reinterpret_cast<const Pack<T>*>(squares + first);
    auto pack = *reinterpret_cast<const Pack<T>*>(result + first);
    for (int k = 0; k < Pack<T>::size; ++k) {
      const float rest = rule.b * widen(once.values[k]) + rule.c * widen(pack.values[k]);
      narrow(row == column + k ? rule.a + rest : rest, pack.values[k]);
    }
    *reinterpret_cast<Pack<T>*>(result + first) = pack;
  }
};

// The next Y of the matrices from cell `first` on, `factors` being what MuonPolynomial left, as symmetric as S. Thread
// = cell.
template <typename T>
struct MuonAdvance {
  MuonTable table;
  const T* factors;
  const T* from;
  T* to;
  std::int64_t first, total;
  DTRAIN_KERNEL std::int64_t threads() const { return total - first; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[table.find<&MuonMatrix::first_cell>(first + i)];
    const std::int64_t cell = first + i - m.first_cell, row = cell / m.low, column = cell % m.low;
    const T* const factor = factors + m.first_square;
    float sum = 0;
    for (std::int64_t k = 0; k < m.low; ++k) sum += widen(from[m.cell(row, k)]) * widen(factor[k * m.low + column]);
    narrow(sum, to[first + i]);
  }
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
