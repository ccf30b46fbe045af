// What a block of muon_products.cu does, but for its barriers and instructions of tensor cores: where each thread finds
// what it loads, reads, adds up and stores. So the unit tests replay it on a CPU.
#pragma once

#include "../../kernels/orthogonalise.hpp"

namespace dtrain::backend::cuda {

// The block of one tile of a product of MuonFactors, kMuonTile rows and columns of its result. It goes through the
// depth in steps; a step's factors lie in one of kStages places of shared memory while the next ones are on their way.
// Warps have kWarpRows x kWarpColumns of the tile, in fragments as mma.m16n8k16 has them: a lane has four elements of
// 16 x 8.
template <typename Product>
class MuonProductBlock {
 public:
  using T = typename Product::Value;
  static constexpr bool by_depth = Product::by_depth;
  static constexpr std::int32_t kThreads = 256, kLanes = 32, kStages = 3, kChunkBytes = 16;
  static constexpr std::int32_t kDepth = 128 / static_cast<std::int32_t>(sizeof(T));  // of a step
  static constexpr std::int32_t kWarpRows = 32, kWarpColumns = 16, kRowBlocks = 2, kColumnBlocks = 2;
  static constexpr std::int32_t kLaneValues = 4;  // of a fragment of the result
  // A factor of a step, in rows of chunks.
  static constexpr std::int32_t size = Pack<T>::size;
  static constexpr std::int32_t kRows = by_depth ? kDepth : kMuonTile;
  static constexpr std::int32_t kChunksInRow = (by_depth ? kMuonTile : kDepth) / size;
  static constexpr std::int32_t kChunks = kRows * kChunksInRow;
  static constexpr std::int32_t kFactorBytes = kChunks * kChunkBytes;
  static constexpr std::int32_t kStageBytes = 2 * kFactorBytes;
  static constexpr std::int32_t kBytes = kStages * kStageBytes;  // of shared memory
  static_assert(kBytes <= 48 * 1024 && kChunks % kThreads == 0 && kChunksInRow >= 8);
  static_assert(kThreads / kLanes * kWarpRows * kWarpColumns == kMuonTile * kMuonTile);

  DTRAIN_KERNEL MuonProductBlock(const Product& product, std::int64_t tile)
      : product_(product), matrix_(matrix_of_tile(product, tile)), factors_(product.factors(matrix_)) {
    const auto own = static_cast<std::int32_t>(tile - matrix_.*Product::tiles);
    const std::int32_t in_row = matrix_.tiles_in_row();
    row_ = own / in_row * kMuonTile;
    column_ = own % in_row * kMuonTile;
  }

  DTRAIN_KERNEL std::int32_t steps() const { return (factors_.depth + kDepth - 1) / kDepth; }

  // What is loaded, 16 bytes from aligned memory, and where it goes in a stage. Outside of a factor there are zeros.
  struct Chunk {
    const T* from;
    bool there;
    std::int32_t place;
  };
  // Chunk `index` < kChunks of a step's factor a or b.
  DTRAIN_KERNEL Chunk chunk(bool of_b, std::int32_t step, std::int32_t index) const {
    const std::int32_t row = index / kChunksInRow, chunk = index % kChunksInRow;
    const T* const factor = of_b ? factors_.b : factors_.a;
    const std::int32_t first = of_b ? column_ : row_, extent = of_b ? factors_.columns : factors_.rows;
    const std::int32_t k = step * kDepth + (by_depth ? row : chunk * size);
    const std::int32_t x = first + (by_depth ? chunk * size : row);
    const bool there = k < factors_.depth && x < extent;
    const std::int64_t at = by_depth ? std::int64_t{k} * matrix_.low + x : std::int64_t{x} * matrix_.low + k;
    return {there ? factor + at : factor, there, place_of_factor(of_b) + place_of_chunk(row, chunk)};
  }

  // Where lane `lane` of a warp lets a matrix of 8 x 8 begin that ldmatrix.x4 gives it, in a stage: its registers are
  // then those of a fragment of mma.m16n8k16, `a` of 16 rows from `x` on, or `b` of twice 8 columns. by_depth: with
  // .trans. `k`: a multiple of 16 below kDepth.
  DTRAIN_KERNEL static std::int32_t fragment_place(bool of_b, std::int32_t lane, std::int32_t x, std::int32_t k) {
    constexpr std::int32_t kSide = 8;
    const std::int32_t matrix = lane / kSide, line = lane % kSide;
    // The registers of a: rows first, then the second half of the depth; those of b: the other way round.
    const std::int32_t x_part = of_b ? matrix / 2 : matrix % 2, k_part = of_b ? matrix % 2 : matrix / 2;
    const std::int32_t at_x = x + x_part * kSide + (by_depth ? 0 : line);
    const std::int32_t at_k = k + k_part * kSide + (by_depth ? line : 0);
    return place_of(of_b, at_x, at_k);
  }

  // The first row or column of a warp in the tile, and of a lane in a fragment.
  DTRAIN_KERNEL static std::int32_t warp_row(std::int32_t warp) { return warp / kWarpsInRow * kWarpRows; }
  DTRAIN_KERNEL static std::int32_t warp_column(std::int32_t warp) { return warp % kWarpsInRow * kWarpColumns; }
  DTRAIN_KERNEL static std::int32_t lane_row(std::int32_t lane, std::int32_t value) { return lane / 4 + value / 2 * 8; }
  DTRAIN_KERNEL static std::int32_t lane_column(std::int32_t lane, std::int32_t value) {
    return lane % 4 * 2 + value % 2;
  }

  using Sums = float[kRowBlocks][kColumnBlocks][kLaneValues];  // of a lane

  // One step without tensor cores, which round float32: by the same fragments, each sum in the order of the depth.
  DTRAIN_KERNEL static void multiply(std::int32_t thread, const unsigned char* stage, Sums& sums) {
    const std::int32_t warp = thread / kLanes, lane = thread % kLanes;
    for (std::int32_t k = 0; k < kDepth; ++k) {
      float a[kRowBlocks][2], b[kColumnBlocks][2];
      DTRAIN_UNROLL
      for (int block = 0; block < kRowBlocks; ++block) {
        DTRAIN_UNROLL
        for (int half = 0; half < 2; ++half)
          a[block][half] = value_at(stage, false, warp_row(warp) + block * 16 + lane_row(lane, 2 * half), k);
      }
      DTRAIN_UNROLL
      for (int block = 0; block < kColumnBlocks; ++block) {
        DTRAIN_UNROLL
        for (int half = 0; half < 2; ++half)
          b[block][half] = value_at(stage, true, warp_column(warp) + block * 8 + lane_column(lane, half), k);
      }
      DTRAIN_UNROLL
      for (int row = 0; row < kRowBlocks; ++row) {
        DTRAIN_UNROLL
        for (int column = 0; column < kColumnBlocks; ++column) {
          DTRAIN_UNROLL
          for (int value = 0; value < kLaneValues; ++value)
            sums[row][column][value] += a[row][value / 2] * b[column][value % 2];
        }
      }
    }
  }

  DTRAIN_KERNEL void store(std::int32_t thread, const Sums& sums) const {
    const std::int32_t warp = thread / kLanes, lane = thread % kLanes;
    DTRAIN_UNROLL
    for (int row_block = 0; row_block < kRowBlocks; ++row_block) {
      DTRAIN_UNROLL
      for (int column_block = 0; column_block < kColumnBlocks; ++column_block) {
        DTRAIN_UNROLL
        for (int first = 0; first < kLaneValues; first += 2) {
          const std::int32_t row = row_ + warp_row(warp) + row_block * 16 + lane_row(lane, first);
          const std::int32_t column = column_ + warp_column(warp) + column_block * 8 + lane_column(lane, first);
          if (row < factors_.rows && column < factors_.columns)
            store_pair(row, column, sums[row_block][column_block][first], sums[row_block][column_block][first + 1]);
        }
      }
    }
  }

 private:
  static constexpr std::int32_t kWarpsInRow = kMuonTile / kWarpColumns;
  struct alignas(2 * sizeof(T)) Pair {
    T values[2];
  };

  DTRAIN_KERNEL static std::int32_t place_of_factor(bool of_b) { return of_b ? kFactorBytes : 0; }
  // Eight rows of one chunk lie in eight banks of 16 bytes.
  DTRAIN_KERNEL static std::int32_t place_of_chunk(std::int32_t row, std::int32_t chunk) {
    return (row * kChunksInRow + (chunk ^ (row & 7))) * kChunkBytes;
  }
  DTRAIN_KERNEL static std::int32_t place_of(bool of_b, std::int32_t x, std::int32_t k) {
    const std::int32_t row = by_depth ? k : x, element = by_depth ? x : k;
    return place_of_factor(of_b) + place_of_chunk(row, element / size) +
           element % size * static_cast<std::int32_t>(sizeof(T));
  }
  DTRAIN_KERNEL static float value_at(const unsigned char* stage, bool of_b, std::int32_t x, std::int32_t k) {
    return widen(*reinterpret_cast<const T*>(stage + place_of(of_b, x, k)));
  }
  // Rows have an even number of elements and begin at one.
  DTRAIN_KERNEL void store_pair(std::int32_t row, std::int32_t column, float left, float right) const {
    Pair pair;
    narrow(product_.finish(matrix_, row, column, left), pair.values[0]);
    narrow(product_.finish(matrix_, row, column + 1, right), pair.values[1]);
    *reinterpret_cast<Pair*>(factors_.result + std::int64_t{row} * matrix_.low + column) = pair;
  }

  const Product& product_;
  const MuonMatrix& matrix_;
  const MuonFactors<T> factors_;
  std::int32_t row_ = 0, column_ = 0;
};

}  // namespace dtrain::backend::cuda
