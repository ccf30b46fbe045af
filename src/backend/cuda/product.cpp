#include "product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace dtrain::backend::cuda {
namespace {

std::int32_t tiles_of(std::int32_t size, std::int32_t of_tile) {
  return static_cast<std::int32_t>(packs_of(size, of_tile));
}

bool is_pointwise(const ConvolutionShape& s) {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_h == 0 && s.pad_w == 0 &&
         s.groups == 1;
}

}  // namespace

std::optional<ProductShape> product_of(const Convolution& work) {
  constexpr std::int32_t kPack = 8;  // TMA's rows begin at multiples of 16 bytes
  constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max() - ProductTile::kM;
  const ConvolutionShape& s = work.shape;
  const std::int64_t rows = std::int64_t{s.n} * s.in_h * s.in_w;
  if (work.dtype == DType::float32 || work.normed.fused || !is_pointwise(s)) return std::nullopt;
  if (s.in % kPack != 0 || s.out % kPack != 0 || rows < 1 || rows > kMostRows) return std::nullopt;
  const auto m = static_cast<std::int32_t>(rows);
  switch (work.direction) {
    case Direction::forward:
      return ProductShape{m, s.out, s.in};
    case Direction::backward_data:
      return ProductShape{m, s.in, s.out};
    case Direction::backward_weights:
      break;
  }
  return ProductShape{s.out, s.in, m};
}

std::vector<ProductTile> product_tiles(const ProductShape& shape) {
  if (shape.n <= 64) return {{64}};
  if (shape.n <= 128) return {{128}, {64}};
  return {{128}, {256}};
}

std::string engine_name(const ProductTile& tile) {
  return fmt::format("wgmma:{}x{}x{}", ProductTile::kM, tile.n, ProductTile::kK);
}

std::optional<ProductTile> tile_of_engine(const std::string& name) {
  for (const std::int32_t n : {64, 128, 256}) {
    if (name == engine_name({n})) return ProductTile{n};
  }
  return std::nullopt;
}

ProductCut cut_product(const ProductShape& shape, const ProductTile& tile, Direction direction) {
  // Two for each processor of an H100; and a split adds up so much that storing its sums does not count.
  constexpr std::int32_t kTiles = 264, kFewestBlocks = 8;
  ProductCut cut{.m_tiles = tiles_of(shape.m, ProductTile::kM),
                 .n_tiles = tiles_of(shape.n, tile.n),
                 .splits = 1,
                 .k_blocks = tiles_of(shape.k, ProductTile::kK),
                 .blocks_in_split = tiles_of(shape.k, ProductTile::kK)};
  if (!leaves_splits(direction)) return cut;
  const std::int32_t wanted = tiles_of(kTiles, cut.tiles());
  cut.blocks_in_split = std::max(tiles_of(cut.k_blocks, wanted), kFewestBlocks);
  cut.splits = tiles_of(cut.k_blocks, cut.blocks_in_split);
  return cut;
}

RowParts moment_folds(const ProductShape& shape) {
  const std::int32_t parts = ProductTile::kConsumers * tiles_of(shape.m, ProductTile::kM);
  RowParts cut{.rows = shape.m, .parts = parts};
  // A fold has as many parts as there are folds: both launches wait for memory the same number of times.
  cut.parts_per_fold = static_cast<std::int32_t>(std::ceil(std::sqrt(parts)));
  cut.folded_parts = tiles_of(parts, cut.parts_per_fold);
  return cut;
}

std::uint64_t product_workspace(const Convolution& work, const ProductTile& tile) {
  const ProductShape shape = product_of(work).value();
  const auto bytes = [](std::int64_t floats) { return static_cast<std::uint64_t>(floats) * sizeof(float); };
  if (leaves_splits(work.direction)) {
    return bytes(std::int64_t{cut_product(shape, tile, work.direction).splits} * shape.m * shape.n);
  }
  if (!work.moments) return 0;
  const RowParts folds = moment_folds(shape);
  return bytes(std::int64_t{folds.parts + folds.folded_parts} * 2 * shape.n);
}

}  // namespace dtrain::backend::cuda
