// No header of the standard library with code in it: see kernel_vector.hpp.
#include "kernel_fused.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

// A register's worth of weights, as they are or rounded to the nearest bfloat16.
template <bool Rounds>
inline Register weights_at(const float* p) {
  const auto v = load<Register>(p);
  return Rounds ? rounded_to_bfloat16(v) : v;
}

// Some columns of some rows of the weights.
struct Block {
  const float* first = nullptr;
  const float* next = nullptr;  // the block behind this one
  int64_t pitch = 0;            // floats from one row to the next
  int rows = 0, columns = 0;
};

// --- forward ---

// kTileRows * kTileSamples sums and a register of each row of weights fit into the registers.
constexpr int kTileRows = kRegisterLanes == 16 ? 6 : 2, kTileSamples = 4;
// One tile of samples waits for the memory alone, which four rows side by side keep busiest.
constexpr int kRowsOfOneTile = kRegisterLanes == 16 ? 4 : 2;
// Samples whose sums for kTileRows rows lie in the first cache, and columns of weights that do so while they pass by.
constexpr int kSamplesAtOnce = 64, kColumnsAtOnce = 1024;

// Adds the products of the block to sums[sample][row]. Each tile of samples asks for its share of the weights that
// come next, so that the memory works while the others multiply.
template <int Rows, int Samples, bool Rounds>
inline void add_products(const Block& w, int tile, int tiles, const float* source, Register (*sums)[kTileRows]) {
  Register products[Samples][Rows];
  for (int s = 0; s < Samples; ++s) {
    for (int r = 0; r < Rows; ++r) products[s][r] = sums[s][r];
  }
  for (int first = 0; first < w.columns; first += tiles * kRegisterLanes) {
    for (int r = 0; r < Rows; ++r) __builtin_prefetch(w.next + r * w.pitch + first + tile * kRegisterLanes);
    const int end = first + tiles * kRegisterLanes < w.columns ? first + tiles * kRegisterLanes : w.columns;
    for (int k = first; k < end; k += kRegisterLanes) {
      Register each[Rows];
      for (int r = 0; r < Rows; ++r) each[r] = weights_at<Rounds>(w.first + r * w.pitch + k);
      for (int s = 0; s < Samples; ++s) {
        const auto x = load<Register>(source + s * w.pitch + k);
        for (int r = 0; r < Rows; ++r) products[s][r] += x * each[r];
      }
    }
  }
  for (int s = 0; s < Samples; ++s) {
    for (int r = 0; r < Rows; ++r) sums[s][r] = products[s][r];
  }
}

template <int Rows, bool Rounds>
inline void add_weights(const Block& w, int samples, const float* source, Register (*sums)[kTileRows]) {
  const int whole = samples / kTileSamples, tiles = whole + samples % kTileSamples;
  for (int tile = 0; tile < whole; ++tile) {
    const int s = tile * kTileSamples;
    add_products<Rows, kTileSamples, Rounds>(w, tile, tiles, source + s * w.pitch, sums + s);
  }
  for (int tile = whole; tile < tiles; ++tile) {
    const int s = whole * kTileSamples + tile - whole;
    add_products<Rows, 1, Rounds>(w, tile, tiles, source + s * w.pitch, sums + s);
  }
}

inline float sum_of_lanes(const Register& v) {
  float lanes[kRegisterLanes];
  store(lanes, v);
  for (int half = kRegisterLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

template <int Rows, bool Rounds>
inline void forward_rows(const DenseWeights& w, int row, int samples, const float* source, const float* bias,
                         float* result) {
  Register sums[kSamplesAtOnce][kTileRows] = {};
  const float* const weights = w.weights + (int64_t)row * w.columns;
  for (int first = 0; first < w.columns; first += kColumnsAtOnce) {
    const int next = first + kColumnsAtOnce;
    const bool is_last = next >= w.columns;
    add_weights<Rows, Rounds>({.first = weights + first,
                               .next = weights + (is_last ? (int64_t)Rows * w.columns : next),
                               .pitch = w.columns,
                               .rows = Rows,
                               .columns = is_last ? w.columns - first : kColumnsAtOnce},
                              samples, source + first, sums);
  }
  for (int s = 0; s < samples; ++s) {
    for (int r = row; r < row + Rows; ++r) {
      result[(int64_t)s * w.rows + r] = sum_of_lanes(sums[s][r - row]) + (bias ? bias[r] : 0.0f);
    }
  }
}

template <int Rows, bool Rounds>
inline void forward_samples(const DenseWeights& w, int samples, const float* source, const float* bias, float* result) {
  int row = 0;
  for (; row + Rows <= w.rows; row += Rows) forward_rows<Rows, Rounds>(w, row, samples, source, bias, result);
  for (; row < w.rows; ++row) forward_rows<1, Rounds>(w, row, samples, source, bias, result);
}

template <bool Rounds>
void forward(const DenseWeights& w, int samples, const float* source, const float* bias, float* result) {
  if (samples <= kTileSamples) return forward_samples<kRowsOfOneTile, Rounds>(w, samples, source, bias, result);
  for (int first = 0; first < samples; first += kSamplesAtOnce) {
    const int number = first + kSamplesAtOnce < samples ? kSamplesAtOnce : samples - first;
    forward_samples<kTileRows, Rounds>(w, number, source + (int64_t)first * w.columns, bias,
                                       result + (int64_t)first * w.rows);
  }
}

// --- backward ---

// Gradients by some columns are summed in scratch, where those of different samples do not lie a multiple of 4096 bytes
// apart: a chip would take what it stores of one for what it loads of another.
constexpr int kGap = kWidestPanel / 4;

struct Sums {
  float* first = nullptr;
  int64_t pitch = 0;
};

inline void store_gradients(const DenseWeights& w, const Sums& sums, int samples, int column, int columns, float* out) {
  for (int s = 0; s < samples; ++s) {
    __builtin_memcpy(out + (int64_t)s * w.columns + column, sums.first + s * sums.pitch, sizeof(float) * columns);
  }
}

// Few samples: rows of weights are read side by side, kRowsBeside * kVectorsBeside registers of them, weights ahead
// asked for before their turn, and each is multiplied by all samples.
constexpr int kFewSamples = 24;
constexpr int kRowsBeside = 8, kVectorsBeside = kRegisterLanes == 16 ? 2 : 1;
constexpr int kAhead = 512;

// The first rows take the place of what is in `sums`.
template <int Rows, bool Rounds>
inline void add_rows(const DenseWeights& w, int row, int column, int columns, int samples, const float* gradient,
                     const Sums& sums) {
  const float* const weights = w.weights + (int64_t)row * w.columns + column;
  for (int k = 0; k < columns; k += kVectorsBeside * kRegisterLanes) {
    Register each[Rows][kVectorsBeside];
    for (int r = 0; r < Rows; ++r) {
      for (int v = 0; v < kVectorsBeside; ++v) {
        const float* const from = weights + (int64_t)r * w.columns + k + v * kRegisterLanes;
        __builtin_prefetch(from + kAhead);
        each[r][v] = weights_at<Rounds>(from);
      }
    }
    for (int s = 0; s < samples; ++s) {
      const float* const factors = gradient + (int64_t)s * w.rows + row;
      float* const to = sums.first + s * sums.pitch + k;
      Register sum[kVectorsBeside];
      for (int v = 0; v < kVectorsBeside; ++v) sum[v] = row > 0 ? load<Register>(to + v * kRegisterLanes) : Register{};
      for (int r = 0; r < Rows; ++r) {
        for (int v = 0; v < kVectorsBeside; ++v) sum[v] += factors[r] * each[r][v];
      }
      for (int v = 0; v < kVectorsBeside; ++v) store(to + v * kRegisterLanes, sum[v]);
    }
  }
}

template <bool Rounds>
void backward_few(const DenseWeights& w, int samples, const float* gradient, float* out, float* scratch) {
  const int at_once = kDenseBlock / samples / kWidestPanel * kWidestPanel;
  const Sums sums{scratch, at_once + kGap};
  for (int column = 0; column < w.columns; column += at_once) {
    const int columns = w.columns - column < at_once ? w.columns - column : at_once;
    int row = 0;
    for (; row + kRowsBeside <= w.rows; row += kRowsBeside) {
      add_rows<kRowsBeside, Rounds>(w, row, column, columns, samples, gradient, sums);
    }
    for (; row < w.rows; ++row) add_rows<1, Rounds>(w, row, column, columns, samples, gradient, sums);
    store_gradients(w, sums, samples, column, columns, out);
  }
}

// Many samples pass by blocks of weights in the second cache, kRowsOfProduct at a time: panels of a product
// [panels][rows][kPanel].
constexpr int kBlockRows = 128, kBlockColumns = 256, kRowsOfProduct = 6;
static_assert(kBlockRows * kBlockColumns <= kDenseBlock && kBlockColumns + kGap <= kDenseSums);

template <bool Rounds>
inline void copy_block(const Block& b, float* panels) {
  for (int r = 0; r < b.rows; ++r) {
    for (int c = 0; c < b.columns; c += kRegisterLanes) {
      store(panels + (c / kPanel * b.rows + r) * kPanel + c % kPanel, weights_at<Rounds>(b.first + r * b.pitch + c));
    }
  }
}

inline void ask_for_rows(const Block& b, int first, int end) {
  for (int r = first; r < end; ++r) {
    for (int c = 0; c < b.columns; c += kRegisterLanes) __builtin_prefetch(b.next + r * b.pitch + c);
  }
}

// Between products it asks for the next block, a few rows at a time.
inline void multiply_block(const Block& b, const DenseWeights& w, int samples, const float* gradient, bool adds,
                           const float* panels, const Sums& sums) {
  for (int s = 0; s < samples; s += kRowsOfProduct) {
    const int number = s + kRowsOfProduct < samples ? kRowsOfProduct : samples - s;
    ask_for_rows(b, b.rows * s / samples, b.rows * (s + number) / samples);
    fused_product({.rows = number,
                   .inner = b.rows,
                   .columns = b.columns,
                   .left = gradient + (int64_t)s * w.rows,
                   .left_row = w.rows,
                   .left_inner = 1,
                   .right = panels,
                   .right_inner = kPanel,
                   .right_panel = (int64_t)b.rows * kPanel,
                   .out = sums.first + s * sums.pitch,
                   .out_row = sums.pitch,
                   .adds = adds});
  }
}

template <bool Rounds>
void backward_many(const DenseWeights& w, int samples, const float* gradient, float* out, float* scratch) {
  const Sums sums{scratch + kBlockRows * kBlockColumns, kBlockColumns + kGap};
  for (int column = 0; column < w.columns; column += kBlockColumns) {
    const int columns = w.columns - column < kBlockColumns ? w.columns - column : kBlockColumns;
    for (int row = 0; row < w.rows; row += kBlockRows) {
      const float* const first = w.weights + (int64_t)row * w.columns + column;
      const bool is_last = row + kBlockRows >= w.rows;
      const Block block{.first = first,
                        .next = is_last ? w.weights + column + kBlockColumns : first + (int64_t)kBlockRows * w.columns,
                        .pitch = w.columns,
                        .rows = is_last ? w.rows - row : kBlockRows,
                        .columns = columns};
      copy_block<Rounds>(block, scratch);
      multiply_block(block, w, samples, gradient + row, row > 0, scratch, sums);
    }
    store_gradients(w, sums, samples, column, columns, out);
  }
}

// Both ways sum over the rows from the first one on: their bits are the same.
template <bool Rounds>
void backward(const DenseWeights& w, int samples, const float* gradient, float* out, float* scratch) {
  return samples < kFewSamples ? backward_few<Rounds>(w, samples, gradient, out, scratch)
                               : backward_many<Rounds>(w, samples, gradient, out, scratch);
}

void dense_forward(const DenseWeights& w, int samples, const float* source, const float* bias, float* result) {
  return w.rounds ? forward<true>(w, samples, source, bias, result) : forward<false>(w, samples, source, bias, result);
}

void dense_backward(const DenseWeights& w, int samples, const float* gradient, float* out, float* scratch) {
  return w.rounds ? backward<true>(w, samples, gradient, out, scratch)
                  : backward<false>(w, samples, gradient, out, scratch);
}

}  // namespace

extern const DenseKernels kDenseKernels = {dense_forward, dense_backward};

}  // namespace dtrain::backend::cpu::DTRAIN_ISA
