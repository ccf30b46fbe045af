// Which convolutions are products, and what these are cut into.
#include "product.hpp"

#include <gtest/gtest.h>

#include <map>

namespace dtrain::backend::cuda {
namespace {

constexpr Direction kCutDirections[] = {Direction::forward, Direction::backward_data, Direction::backward_weights};
constexpr ProductTile kCutTiles[] = {{64}, {128}, {256}};

TEST(CudaProduct, FitsIntoAProcessor) {
  constexpr std::int32_t kKilobyte = 1024, kOfProcessor = 228 * kKilobyte, kOfBlock = 227 * kKilobyte;
  for (const ProductTile& tile : kCutTiles) {
    const std::int32_t barriers = 2 * tile.stages() * 8;
    EXPECT_LE(tile.shared_bytes() + barriers, kOfBlock) << tile.n;
    EXPECT_LE(tile.blocks_at_once() * (tile.shared_bytes() + barriers + kKilobyte), kOfProcessor) << tile.n;
    EXPECT_EQ(tile.stage_bytes() % ProductTile::kAlignment, 0);
    EXPECT_EQ(tile.result_bytes() % ProductTile::kAlignment, 0);
    EXPECT_EQ(tile_of_engine(engine_name(tile))->n, tile.n);
  }
  EXPECT_EQ(engine_name({64}), "wgmma:128x64x64");
  EXPECT_FALSE(tile_of_engine("62:2=4"));
  EXPECT_FALSE(tile_of_engine(""));
}

// Each value of C is added up once for each 64 k.
TEST(CudaProduct, SharesOutEveryTileOnce) {
  for (const Direction direction : kCutDirections) {
    for (const ProductShape& shape :
         {ProductShape{802816, 256, 64}, ProductShape{64, 256, 802816}, ProductShape{2048, 512, 12544},
          ProductShape{1000, 2048, 256}, ProductShape{24, 8, 1}}) {
      for (const ProductTile& tile : kCutTiles) {
        const ProductCut cut = cut_product(shape, tile, direction);
        std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> blocks;
        for (std::int32_t index = 0; index < cut.tiles(); ++index) {
          const ProductCut::Place place = cut.at(index);
          EXPECT_GT(place.blocks, 0);
          EXPECT_EQ(place.first_block, place.split * cut.blocks_in_split);
          EXPECT_LT(place.m * ProductTile::kM, shape.m);
          EXPECT_LT(place.n * tile.n, shape.n);
          blocks[{place.m, place.n}] += place.blocks;
        }
        EXPECT_EQ(blocks.size(), static_cast<std::size_t>(cut.m_tiles * cut.n_tiles));
        for (const auto& [place, count] : blocks) ASSERT_EQ(count, (shape.k + 63) / 64);
      }
    }
  }
}

Convolution pointwise(Direction direction, std::int32_t in, std::int32_t out, DType dtype = DType::bfloat16) {
  return {.direction = direction, .shape = {2, in, 7, 7, out, 7, 7, 1, 1, 1, 1, 0, 0, 1}, .dtype = dtype};
}

TEST(CudaProduct, IsAConvolutionOfOnePixelAndOneStep) {
  EXPECT_EQ(product_of(pointwise(Direction::forward, 64, 256)), (ProductShape{98, 256, 64}));
  EXPECT_EQ(product_of(pointwise(Direction::backward_data, 64, 256)), (ProductShape{98, 64, 256}));
  EXPECT_EQ(product_of(pointwise(Direction::backward_weights, 64, 256)), (ProductShape{256, 64, 98}));
  EXPECT_TRUE(product_of(pointwise(Direction::forward, 24, 1000, DType::float16)));
  EXPECT_FALSE(product_of(pointwise(Direction::forward, 64, 256, DType::float32)));
  EXPECT_FALSE(product_of(pointwise(Direction::forward, 12, 256))) << "rows of 24 bytes";
  EXPECT_FALSE(product_of(pointwise(Direction::forward, 64, 9)));
  Convolution work = pointwise(Direction::forward, 64, 64);
  work.shape.stride_h = 2;
  EXPECT_FALSE(product_of(work));
  work = pointwise(Direction::forward, 64, 64);
  work.shape.kernel_w = 3;
  EXPECT_FALSE(product_of(work));
  work = pointwise(Direction::forward, 64, 64);
  work.shape.groups = 2;
  EXPECT_FALSE(product_of(work));
  work = pointwise(Direction::forward, 64, 64);
  work.shape.pad_h = 1;
  EXPECT_FALSE(product_of(work));
  work = pointwise(Direction::forward, 64, 64);
  work.normed.fused = true;
  EXPECT_FALSE(product_of(work));
  work = pointwise(Direction::forward, 64, 64);
  work.shape.n = 1 << 26;
  EXPECT_FALSE(product_of(work)) << "more rows than 32 bits count";
}

TEST(CudaProduct, NeedsMemoryForWhatIsAddedLater) {
  float moments[1];
  Convolution work = pointwise(Direction::forward, 64, 256);
  EXPECT_EQ(product_workspace(work, {128}), 0);
  EXPECT_EQ(product_workspace(pointwise(Direction::backward_data, 64, 256), {128}), 0);
  work.moments = moments;
  const RowParts folds = moment_folds(*product_of(work));
  EXPECT_EQ(folds.parts, 2);
  EXPECT_EQ(product_workspace(work, {128}), (2 + folds.folded_parts) * 2 * 256 * sizeof(float));
  work = pointwise(Direction::backward_weights, 64, 256);
  EXPECT_EQ(product_workspace(work, {64}), 64 * 256 * sizeof(float));
  for (std::int32_t rows = 1; rows < 3000000; rows = rows * 3 + 1) {
    const RowParts cut = moment_folds({rows, 64, 64});
    EXPECT_GE(cut.folded_parts * cut.parts_per_fold, cut.parts);
    EXPECT_LT((cut.folded_parts - 1) * cut.parts_per_fold, cut.parts);
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
