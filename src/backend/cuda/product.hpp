// Convolutions that are products of matrices: C [m, n] = A [m, k] times B [k, n]. dtrain has a kernel of its own for
// them on Hopper's tensor cores (gpu/native/product.hpp), which is one more engine beside cuDNN's. Here stands what it
// computes and what that is cut into. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "call.hpp"

namespace dtrain::backend::cuda {

struct ProductShape {
  std::int32_t m, n, k;
  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};

// Forward: x times weights. Data: dy times weights. Weights: dy transposed times x. nullopt: the kernel does not
// compute it. It computes 1x1 convolutions of stride 1 in types of two bytes, whose rows are whole packs of 16 bytes;
// forward, it can leave the moments of what it stores.
std::optional<ProductShape> product_of(const Convolution& work);

// The sum over k is long, and C small: k is cut into splits, whose sums are added afterwards.
constexpr bool leaves_splits(Direction direction) { return direction == Direction::backward_weights; }

// What a block computes at a time: so many rows and columns of C, from 64 k at a time, 16 in one instruction.
struct ProductTile {
  static constexpr std::int32_t kM = 128, kK = 64, kStepK = 16;
  static constexpr std::int32_t kConsumers = 2, kGroupM = kM / kConsumers;  // warpgroups that multiply; rows of each
  static constexpr std::int32_t kWarp = 32, kGroup = 128;                   // threads
  static constexpr std::int32_t kThreads = (1 + kConsumers) * kGroup;
  static constexpr std::int32_t kAlignment = 1024;  // bytes, of what is swizzled

  std::int32_t n;  // 64, 128 or 256

  constexpr std::int32_t a_bytes() const { return kM * kK * 2; }
  constexpr std::int32_t b_bytes() const { return n * kK * 2; }
  constexpr std::int32_t stage_bytes() const { return a_bytes() + b_bytes(); }
  // Where a consumer leaves its part of C.
  constexpr std::int32_t result_bytes() const { return kGroupM * n * 2; }
  // Two blocks share a processor where they fit: one computes while the other one stores.
  constexpr std::int32_t blocks_at_once() const { return n <= 64 ? 2 : 1; }
  // What is under way hides the latency of memory. A processor has 228 KB for its blocks, each with 1 KB of its own.
  constexpr std::int32_t stages() const { return n == 128 ? 5 : 3; }
  // What the warps of a consumer leave of their rows' moments, for it to add: [warp][sum, square][n].
  constexpr std::int32_t moment_bytes() const {
    return kGroup / kWarp * 2 * n * static_cast<std::int32_t>(sizeof(float));
  }
  constexpr std::int32_t shared_bytes() const {
    return kAlignment + stages() * stage_bytes() + kConsumers * (result_bytes() + moment_bytes());
  }
};

// Tiles that suit the shape, the likeliest first.
std::vector<ProductTile> product_tiles(const ProductShape& shape);

// "wgmma:128x64x64": the engine that computes by such tiles. A kernel that gives other bits needs another name: names
// stand in plan stores.
std::string engine_name(const ProductTile& tile);
std::optional<ProductTile> tile_of_engine(const std::string& name);  // nullopt: it is no such name

// How C is shared out: block b of a launch does the tiles b, b + blocks, ... The bits depend on the shape alone: one
// consumer adds up a tile's sums, and splits are added in their order.
struct ProductCut {
  std::int32_t m_tiles, n_tiles;
  std::int32_t splits;           // of k, each with sums of its own
  std::int32_t k_blocks;         // of ProductTile::kK, all of them
  std::int32_t blocks_in_split;  // the last split may have fewer

  struct Place {
    std::int32_t m, n, split;  // of the tile, in tiles
    std::int32_t first_block, blocks;
  };
  DTRAIN_KERNEL constexpr std::int32_t tiles() const { return m_tiles * n_tiles * splits; }
  // Neighbours read the same rows of A, which the second cache keeps.
  DTRAIN_KERNEL constexpr Place at(std::int32_t tile) const {
    const std::int32_t rest = tile / n_tiles, split = rest / m_tiles;
    const std::int32_t first = split * blocks_in_split, left = k_blocks - first;
    return {rest % m_tiles, tile % n_tiles, split, first, left < blocks_in_split ? left : blocks_in_split};
  }
};
ProductCut cut_product(const ProductShape& shape, const ProductTile& tile, Direction direction);

// A consumer leaves the moments of its rows of a tile, [part][2][n] floats with two parts a tile; FoldParts adds them
// up twice, first to `folds.folded_parts`, then to one.
RowParts moment_folds(const ProductShape& shape);

// Bytes that the kernel needs beside its operands.
std::uint64_t product_workspace(const Convolution& work, const ProductTile& tile);

}  // namespace dtrain::backend::cuda
