// orthogonal() of <dtrain/nn/optimizer_rule.hpp>, for all weights of a network at once. A weight is worked on as X,
// which is the weight's direction or its transpose, whichever has no more rows than columns. All products are sums over
// k of left[k][i] * right[k][j], so that neighbouring threads read neighbours: X X' of X as it lies transposed, the
// others because X X' is symmetric. A thread computes a tile; sizes are rounded up to whole tiles, with zeros that stay
// zeros.
#pragma once

#include <cmath>

#include <dtrain/nn/optimizer_rule.hpp>

#include "../body.hpp"

namespace dtrain::backend::cuda {

constexpr std::int32_t kTile = Pack<float>::size;
constexpr std::int32_t kTileCells = kTile * kTile;
constexpr std::int64_t kMuonDepth = 256;  // products that one thread adds up for X X'
constexpr std::int64_t kMuonPart = 1024;  // squares that one thread adds up for a length

// One weight. `first_...`: how many of the kind the matrices before this one have. That is where its threads begin, and
// where its cells lie in the buffers of that kind.
struct MuonMatrix {
  std::int64_t flat = 0;               // its first element in the flat buffers
  std::int32_t rows = 0, columns = 0;  // as it lies there
  std::int32_t low = 0, high = 0;      // of X, rounded up
  std::int32_t parts = 0, depths = 0;  // of the sums for its lengths, and for X X'
  std::int64_t first_element = 0;      // rows x columns
  std::int64_t first_part = 0;         // parts
  std::int64_t first_cell = 0;         // low x high
  std::int64_t first_square = 0;       // low x low
  std::int64_t first_depth = 0;        // depths x low x low
  bool scale_free = false;
  DTRAIN_BODY bool tall() const { return rows > columns; }
  DTRAIN_BODY std::int64_t size() const { return std::int64_t{rows} * columns; }
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
  DTRAIN_BODY std::int32_t find(std::int64_t i) const {
    std::int32_t low = 0, high = number;
    while (high - low > 1) {
      const std::int32_t middle = (low + high) / 2;
      (matrices[middle].*First <= i ? low : high) = middle;
    }
    return low;
  }
};

struct Tile {
  float values[kTile][kTile];
};

// The tile at [row][column] of the sum over k in [begin, end).
DTRAIN_BODY inline Tile tile_product(const float* left, std::int32_t left_width, std::int32_t row, const float* right,
                                     std::int32_t right_width, std::int32_t column, std::int64_t begin,
                                     std::int64_t end) {
  Tile sum{};
  for (std::int64_t k = begin; k < end; ++k) {
    const auto l = *reinterpret_cast<const Pack<float>*>(left + k * left_width + row);
    const auto r = *reinterpret_cast<const Pack<float>*>(right + k * right_width + column);
    for (int y = 0; y < kTile; ++y) {
      for (int x = 0; x < kTile; ++x) sum.values[y][x] += l.values[y] * r.values[x];
    }
  }
  return sum;
}

DTRAIN_BODY inline void store_tile(const Tile& tile, float* to, std::int32_t width, std::int32_t row,
                                   std::int32_t column) {
  for (int y = 0; y < kTile; ++y) {
    Pack<float> pack;
    for (int x = 0; x < kTile; ++x) pack.values[x] = tile.values[y][x];
    *reinterpret_cast<Pack<float>*>(to + std::int64_t{row + y} * width + column) = pack;
  }
}

// Sums of squares of directions and weights. Thread = part of a matrix: every parts-th element.
struct MuonSquares {
  MuonTable table;
  const float* directions;
  const float* weights;
  MuonLength* sums;
  std::int64_t total;
  DTRAIN_BODY std::int64_t threads() const { return total; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[table.find<&MuonMatrix::first_part>(i)];
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
  DTRAIN_BODY std::int64_t threads() const { return table.number; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
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

// X and X'. Thread = cell of X.
struct MuonLoad {
  MuonTable table;
  const float* directions;
  const MuonLength* lengths;
  float* x;
  float* transposed;
  std::int64_t total;
  DTRAIN_BODY std::int64_t threads() const { return total; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const std::int32_t which = table.find<&MuonMatrix::first_cell>(i);
    const MuonMatrix& m = table.matrices[which];
    const std::int64_t row = (i - m.first_cell) / m.high, column = (i - m.first_cell) % m.high;
    const std::int64_t from_row = m.tall() ? column : row, from_column = m.tall() ? row : column;
    const bool there = from_row < m.rows && from_column < m.columns;
    const float value =
        there ? directions[m.flat + from_row * m.columns + from_column] / lengths[which].direction : 0.0f;
    x[i] = value;
    transposed[m.first_cell + column * m.low + row] = value;
  }
};

// Parts of X X', kMuonDepth products each. Thread = part and tile.
struct MuonSquareParts {
  MuonTable table;
  const float* transposed;
  float* sums;
  std::int64_t total;
  DTRAIN_BODY std::int64_t threads() const { return total / kTileCells; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[table.find<&MuonMatrix::first_depth>(i * kTileCells)];
    const std::int32_t tiles = m.low / kTile;
    std::int64_t tile = i - m.first_depth / kTileCells;
    const auto column = static_cast<std::int32_t>(tile % tiles) * kTile;
    tile /= tiles;
    const auto row = static_cast<std::int32_t>(tile % tiles) * kTile;
    const std::int64_t depth = tile / tiles, begin = depth * kMuonDepth;
    const std::int64_t end = begin + kMuonDepth < m.high ? begin + kMuonDepth : m.high;
    const float* const t = transposed + m.first_cell;
    float* const to = sums + m.first_depth + depth * m.low * m.low;
    store_tile(tile_product(t, m.low, row, t, m.low, column, begin, end), to, m.low, row, column);
  }
};

// X X' = the sum of its parts. Thread = cell of it.
struct MuonSquare {
  MuonTable table;
  const float* sums;
  float* squares;
  std::int64_t total;
  DTRAIN_BODY std::int64_t threads() const { return total; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[table.find<&MuonMatrix::first_square>(i)];
    const float* const parts = sums + m.first_depth + (i - m.first_square);
    float sum = 0;
    for (std::int64_t depth = 0; depth < m.depths; ++depth) sum += parts[depth * m.low * m.low];
    squares[i] = sum;
  }
};

// B = b X X' + c (X X')². Thread = tile of it.
struct MuonRest {
  MuonTable table;
  const float* squares;
  float* rests;
  std::int64_t total;
  float b, c;
  DTRAIN_BODY std::int64_t threads() const { return total / kTileCells; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[table.find<&MuonMatrix::first_square>(i * kTileCells)];
    const std::int32_t tiles = m.low / kTile;
    const std::int64_t tile = i - m.first_square / kTileCells;
    const auto row = static_cast<std::int32_t>(tile / tiles) * kTile;
    const auto column = static_cast<std::int32_t>(tile % tiles) * kTile;
    const float* const square = squares + m.first_square;
    Tile result = tile_product(square, m.low, row, square, m.low, column, 0, m.low);
    for (int y = 0; y < kTile; ++y) {
      for (int x = 0; x < kTile; ++x) {
        result.values[y][x] = b * square[std::int64_t{row + y} * m.low + column + x] + c * result.values[y][x];
      }
    }
    store_tile(result, rests + m.first_square, m.low, row, column);
  }
};

// X = a X + B X, and its transpose. Thread = tile of X.
struct MuonAdvance {
  MuonTable table;
  const float* rests;
  const float* from;
  float* to;
  float* transposed;
  std::int64_t total;
  float a;
  DTRAIN_BODY std::int64_t threads() const { return total / kTileCells; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const MuonMatrix& m = table.matrices[table.find<&MuonMatrix::first_cell>(i * kTileCells)];
    const std::int32_t tiles = m.high / kTile;
    const std::int64_t tile = i - m.first_cell / kTileCells;
    const auto row = static_cast<std::int32_t>(tile / tiles) * kTile;
    const auto column = static_cast<std::int32_t>(tile % tiles) * kTile;
    const float* const x = from + m.first_cell;
    Tile result = tile_product(rests + m.first_square, m.low, row, x, m.high, column, 0, m.low), turned;
    for (int y = 0; y < kTile; ++y) {
      for (int k = 0; k < kTile; ++k) {
        result.values[y][k] = a * x[std::int64_t{row + y} * m.high + column + k] + result.values[y][k];
        turned.values[k][y] = result.values[y][k];
      }
    }
    store_tile(result, to + m.first_cell, m.high, row, column);
    store_tile(turned, transposed + m.first_cell, m.low, column, row);
  }
};

// The step of the weights. Thread = element of a matrix.
struct MuonStep {
  MuonTable table;
  const float* x;
  const MuonLength* lengths;
  float* weights;
  std::int64_t total;
  float learning_rate, weight_decay;
  DTRAIN_BODY std::int64_t threads() const { return total; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const std::int32_t which = table.find<&MuonMatrix::first_element>(i);
    const MuonMatrix& m = table.matrices[which];
    const std::int64_t element = i - m.first_element, row = element / m.columns, column = element % m.columns;
    const float along = x[m.first_cell + (m.tall() ? column * m.high + row : row * m.high + column)];
    float& weight = weights[m.flat + element];
    const float scaled = lengths[which].scale * weight;
    weight = scaled - learning_rate * (along + weight_decay * scaled);
  }
};

}  // namespace dtrain::backend::cuda
